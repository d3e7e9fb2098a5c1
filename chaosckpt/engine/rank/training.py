"""A rank: one process of the training job under test, from its order to its exit."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import get_args

import msgspec

from chaosckpt.engine.gate.passage import pass_gate
from chaosckpt.engine.rank.environment import look_around
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.reports import Mark, Rendezvous, Report, Stepping
from chaosckpt.errors import PluginError
from chaosckpt.model.journal import (
    Acknowledged,
    Finished,
    Outstanding,
    Raised,
    Recovered,
    RecoveryStarted,
    SaveFailed,
    SaveStarted,
    StepTrace,
)
from chaosckpt.plugins import load_target
from chaosckpt.targets.api import Ack, Chosen, Context, Done, Intent, Level, Nothing, Pending, Target
from chaosckpt.workload.digest import digest
from chaosckpt.workload.loop import Job, StepReport, build, train_step
from chaosckpt.workload.state import TrainState

MESSAGE_BYTES = 4000
SIGTERM_EXIT_CODE = 128 + signal.SIGTERM


class Terminated(BaseException):
    """SIGTERM arrived: unwind, close the target, leave."""


class Life:
    """What a rank does between its order and its exit, reporting as it goes."""

    def __init__(self, order: RankOrder, channel: Channel) -> None:
        self.order = order
        self.attempt = order.attempt.attempt
        self.rank = order.place.rank
        self.channel = channel
        self.where = "start"
        self.step: int | None = None
        self.outstanding: list[tuple[int, Pending]] = []
        self.trained: list[StepTrace] = []

    def report(self, report: Report) -> None:
        """Tell the node, and go on only when it has taken note: a report and a fault can't overtake one another."""
        self.channel.send(report)
        if self.channel.connection.recv(1) != b"k":
            os._exit(1)

    def live(self) -> None:
        """Join the process group, recover, train, save, close. Raises what the target or the training raises."""
        self.join()
        if self.order.attempt.look_around:
            self.report(look_around(self.order.place))
        job = self.build()
        target = self.make_target()
        self.recover(job, target)
        if self.order.attempt.recover_only:
            return
        self.train(job, target)
        self.leave(job, target)

    def build(self) -> Job:
        """The job at step 0."""
        return build(self.order.settings.workload, self.rank, self.order.attempt.world_size, self.attempt)

    def leave(self, job: Job, target: Target) -> None:
        """End in order, with the manners of the workload's training script."""
        import torch.distributed as dist

        workload, state = self.order.settings.workload, job.state
        self.where, self.step = "wait", state.step
        if workload.destroys_group and dist.is_initialized():
            dist.destroy_process_group()
        while self.outstanding and workload.at_end == "await":
            self.acknowledge_oldest()
        if workload.at_end != "exit":
            self.where = "close"
            target.close()
        self.report(
            Finished(
                attempt=self.attempt, rank=self.rank, step=state.step, digest=digest(state), trained=self.take_trained()
            )
        )

    def take_trained(self) -> tuple[StepTrace, ...]:
        """The steps trained since this was last asked."""
        trained, self.trained = tuple(self.trained), []
        return trained

    def join(self) -> None:
        """Build the process group over TCP: rank 0 serves the store at its node's address and reports the port."""
        import torch.distributed as dist
        from torch._C._distributed_c10d import TCPStore

        attempt = self.order.attempt
        if attempt.world_size == 1 and self.order.settings.workload.strategy == "ddp":
            return
        timeout = timedelta(seconds=attempt.collective_timeout_seconds)
        if self.rank == 0:
            store = TCPStore(attempt.address, 0, is_master=True, wait_for_workers=False, timeout=timeout)
            self.report(Rendezvous(attempt.address, store.port))
        else:
            place = msgspec.msgpack.decode(self.channel.receive(), type=Rendezvous)
            store = TCPStore(place.host, place.port, is_master=False, wait_for_workers=False, timeout=timeout)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=attempt.world_size, timeout=timeout)

    def make_target(self) -> Target:
        """The target of this rank."""
        attempt, place = self.order.attempt, self.order.place
        context = Context(
            rank=self.rank,
            world_size=attempt.world_size,
            node=place.node,
            local_rank=place.local_rank,
            ranks_on_node=sum(1 for other in attempt.places if other.node == place.node),
            shared=Path(place.tiers["shared"]),
            local=Path(place.tiers["local"]),
            attempt=self.attempt + 1,
            options=self.order.settings.options,
            mark=self.mark,
        )
        return load_target(self.order.settings.target)(context)

    def mark(self, stage: str) -> None:
        """The target says that a stage of its begins."""
        self.report(Mark(self.rank, stage))

    def recover(self, job: Job, target: Target) -> None:
        """Let the target recover, then report the step that it names beside what the live objects hold."""
        self.where = "recover"
        self.report(RecoveryStarted(attempt=self.attempt, rank=self.rank))
        chosen = chosen_step(target.recover(job.state, Intent(self.order.attempt.intent)))
        self.report(Recovered(attempt=self.attempt, rank=self.rank, chosen=chosen, digest=digest(job.state)))

    def train(self, job: Job, target: Target) -> None:
        """Train to the last step, saving on the way. A save is awaited at once when it is done, else before the next one."""
        settings, state = self.order.settings.workload, job.state
        holds = self.order.attempt.hold_steps.get(self.rank, ())
        while state.step < settings.steps:
            self.where, self.step = "train", state.step + 1
            if self.step in holds:
                self.report(Stepping(self.rank, self.step))
            self.trained.append(trace(train_step(job)))
            if settings.saves_after(state.step):
                self.save(job, target)
                if state.step == self.order.attempt.stop_after:
                    return

    def save(self, job: Job, target: Target) -> None:
        """Save, and where that raises try again as often as the workload says."""
        workload, state = self.order.settings.workload, job.state
        self.where = "wait"
        while len(self.outstanding) >= workload.outstanding:
            self.acknowledge_oldest()
        for left in reversed(range(workload.retries + 1)):
            try:
                self.save_once(state, target)
                return
            except Exception as error:  # whatever the target raises, a script that tries again does so
                if not left:
                    raise
                self.save_failed(state.step, error)

    def save_once(self, state: TrainState, target: Target) -> None:
        """Start one save and, if it is done already, report its acknowledgement; else what is under way now."""
        self.where, self.step = "save", state.step
        self.report(
            SaveStarted(
                attempt=self.attempt,
                rank=self.rank,
                step=state.step,
                digest=digest(state),
                trained=self.take_trained(),
            )
        )
        pending = target.save(state, state.step)
        if not isinstance(pending, Pending):
            raise PluginError(f"save returned {pending!r}; it must return what has wait(), such as Done('shared')")
        self.outstanding.append((state.step, pending))
        if isinstance(pending, Done):
            self.acknowledge_oldest()
        else:
            saves = tuple(step for step, other in self.outstanding if not is_done(other))
            self.report(Outstanding(attempt=self.attempt, rank=self.rank, step=state.step, saves=saves))

    def save_failed(self, step: int, error: Exception) -> None:
        """Report a failed save that doesn't end this life."""
        self.report(
            SaveFailed(
                attempt=self.attempt,
                rank=self.rank,
                step=step,
                where=self.where,
                error_type=type(error).__name__,
                message=str(error)[:MESSAGE_BYTES],
            )
        )

    def acknowledge_oldest(self) -> None:
        """Await the oldest outstanding save and report its level; a slower tier is awaited in its turn."""
        step, pending = self.outstanding.pop(0)
        try:
            ack = pending.wait()
        except Exception as error:  # as in save: but what was trained since can't be saved as that step any more
            if isinstance(pending, Done) or not self.order.settings.workload.retries:
                raise
            self.save_failed(step, error)
            return
        if not isinstance(ack, Ack) or ack.level not in get_args(Level):
            raise PluginError(f"wait of a save returned {ack!r}; it must return Ack('local') or Ack('shared')")
        self.report(Acknowledged(attempt=self.attempt, rank=self.rank, step=step, level=ack.level))
        if ack.then is not None:
            self.outstanding.append((step, ack.then))

    def raised(self, error: BaseException) -> None:
        """Report the exception that ended this life."""
        message = str(error)[:MESSAGE_BYTES]
        kind = type(error).__name__
        self.report(
            Raised(
                attempt=self.attempt, rank=self.rank, where=self.where, step=self.step, error_type=kind, message=message
            )
        )


def trace(step: StepReport) -> StepTrace:
    """What one step did, as the journal keeps it."""
    return StepTrace(step.step, tuple(step.samples), step.loss.hex())


def is_done(pending: Pending) -> bool:
    """Whether a save under way says that it is finished; one that can't tell isn't, as it has not been awaited."""
    done = getattr(pending, "done", None)
    return done is not None and bool(done())


def chosen_step(answer: object) -> int | None:
    """The step that a recovery names, None for Nothing. Raises PluginError for what is no answer: it must not pass for one."""
    if isinstance(answer, Nothing):
        return None
    # bool is an int to Python, and a step of numpy or torch is none to the node.
    if isinstance(answer, Chosen) and type(answer.step) is int:
        return answer.step
    raise PluginError(f"recover returned {answer!r}; it must return Chosen(step), with an int, or Nothing()")


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def run(connection: socket.socket) -> None:
    """The whole process of a rank, given its end of the channel to its node. Never returns."""
    channel = Channel(connection)
    try:
        order = msgspec.msgpack.decode(channel.receive(), type=RankOrder)
        os.environ["GLOO_SOCKET_IFNAME"] = interface_of(order.attempt.address)
        if order.settings.gate:
            pass_gate(connection)
        signal.signal(signal.SIGTERM, _on_sigterm)
        code = _guarded(life_of(order)(order, channel))
    except (EOFError, ConnectionError, BrokenPipeError):
        code = 1  # the node is gone, and this rank goes with it
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a log that can't be written must not change how this life ended
            stream.flush()
    os._exit(code)


def life_of(order: RankOrder) -> type[Life]:
    """Which kind of life a rank is ordered to live."""
    if order.attempt.reference is not None:
        from chaosckpt.engine.rank.reference import ReferenceLife

        return ReferenceLife
    if order.attempt.audit:
        from chaosckpt.engine.rank.audit import AuditLife

        return AuditLife
    if order.attempt.measure is not None:
        from chaosckpt.engine.rank.measuring import MeasureLife

        return MeasureLife
    return Life


def _guarded(life: Life) -> int:
    """Live; returns the exit code. An exception is reported and printed, as an unguarded script would print it."""
    try:
        life.live()
        return 0
    except Terminated as error:
        life.raised(error)
        return SIGTERM_EXIT_CODE
    except SystemExit as error:
        life.raised(error)
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except (
        BaseException
    ) as error:  # the code under test may raise anything (torch's CheckpointException is none); it is the subject here
        with suppress(OSError):  # the log lies on storage, which may be what is full; the report does not
            traceback.print_exc()
        life.raised(error)
        return 1


def rehearse(order: RankOrder, connection: socket.socket) -> None:
    """Live once without a gate, so that all that a rank imports is imported."""
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(order.attempt.address)
    import torch.distributed as dist
    from torch._C._distributed_c10d import TCPStore

    life = Life(order, Channel(connection))
    if order.settings.workload.strategy == "ddp":  # a lone rank needs no group, but those of a larger world will
        store = TCPStore(order.attempt.address, 0, is_master=True, wait_for_workers=False)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        dist.barrier()
        dist.all_gather_object([None], None)
        from torch.nn.parallel import DistributedDataParallel  # noqa: F401 - imported for its warmth
    life.live()


def interface_of(address: str) -> str:
    """The name of the network interface that has this IPv4 address, for gloo. Raises OSError when none has."""
    import fcntl
    import struct

    siocgifaddr = 0x8915
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), siocgifaddr, request)
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    raise OSError(f"no network interface has the address {address}")
