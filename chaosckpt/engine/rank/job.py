"""What every program of a training job shares: the rank's order, its reports, its process group, its job and its target."""

from __future__ import annotations

import os
import signal
import socket
import traceback
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType

import msgspec

from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.reports import Rendezvous, Report, StageMark
from chaosckpt.gate.install import pass_gate
from chaosckpt.model.journal import Raised
from chaosckpt.plugins import load_target
from chaosckpt.targets.api import Context, Target
from chaosckpt.training.loop import Job, build

MESSAGE_BYTES = 4000
SIGTERM_EXIT_CODE = 128 + signal.SIGTERM


class Terminated(BaseException):
    """SIGTERM arrived: unwind, close the target, leave."""


class JobProgram:
    """Base of the programs of a training job's ranks. `where` and `step` say what it does now, for the report of an exception."""

    def __init__(self, order: RankOrder, channel: Channel) -> None:
        self.order = order
        self.attempt = order.attempt.attempt
        self.rank = order.place.rank
        self.workload = order.settings.workload
        self.channel = channel
        self.where = "start"
        self.step: int | None = None

    def run(self) -> None:
        """See Program."""
        raise NotImplementedError

    def report(self, report: Report) -> None:
        """Tell the node, and go on only when it has taken note: a report and a fault can't overtake one another."""
        self.channel.send(report)
        if self.channel.connection.recv(1) != b"k":
            os._exit(1)

    def build(self) -> Job:
        """The job at step 0."""
        return build(self.workload, self.rank, self.order.attempt.world_size, self.attempt)

    def join(self) -> None:
        """Build the process group over TCP: rank 0 serves the store at its node's address and reports the port."""
        import torch.distributed as dist
        from torch._C._distributed_c10d import TCPStore

        attempt = self.order.attempt
        if attempt.world_size == 1 and self.workload.strategy == "ddp":
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
        self.report(StageMark(self.rank, stage))

    def raised(self, error: BaseException) -> None:
        """Report the exception that ended this program."""
        message = str(error)[:MESSAGE_BYTES]
        kind = type(error).__name__
        self.report(
            Raised(
                attempt=self.attempt, rank=self.rank, where=self.where, step=self.step, error_type=kind, message=message
            )
        )


def guarded(program: JobProgram) -> int:
    """Run it under the gate, if there is one; returns the exit code."""
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(program.order.attempt.address)
    if program.order.settings.gate:
        pass_gate(program.channel.connection)
    signal.signal(signal.SIGTERM, _on_sigterm)
    return exit_code_of(program)


def exit_code_of(program: JobProgram) -> int:
    """Run it; returns the exit code. An exception is reported and printed, as an unguarded script would print it."""
    try:
        program.run()
        return 0
    except Terminated as error:
        program.raised(error)
        return SIGTERM_EXIT_CODE
    except SystemExit as error:
        program.raised(error)
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except (
        BaseException
    ) as error:  # the code under test may raise anything (torch's CheckpointException is none); it is the subject here
        with suppress(OSError):  # the log lies on storage, which may be what is full; the report does not
            traceback.print_exc()
        program.raised(error)
        return 1


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


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
