"""The node process: one event loop that owns a fork server, the gates of its ranks and its node-local storage.

Run as `python -m chaosckpt.engine.node.server FD [PARENT]`, where FD is its end of the trial runner's channel. It imports no
torch. Whatever it started ends when that channel does, or with the process PARENT that started it.

What it can be asked are the requests of chaosckpt/engine/wire/requests.py, dispatched in `answer`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine.node import network
from chaosckpt.engine.node.armed import ArmedFaults
from chaosckpt.engine.node.launcher import Launcher, free_port
from chaosckpt.engine.node.mutation import mutate
from chaosckpt.engine.node.observation import Observation, observation_of
from chaosckpt.engine.node.progress import Progress
from chaosckpt.engine.node.rank_process import NodeAttempt, RankProcess, decode_path
from chaosckpt.engine.node.sampling import SocketCounters, describe, sample
from chaosckpt.engine.wire import requests as r
from chaosckpt.engine.wire import storage
from chaosckpt.engine.wire.channel import Channel, pair
from chaosckpt.engine.wire.orders import AttemptOrder, NodeSettings, Place, RankOrder, Refused
from chaosckpt.engine.wire.process_tree import (
    adopt_orphans,
    adopted,
    die_with_parent,
    ended_children,
    kill_trees,
    orphans,
)
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.engine.wire.reports import Cause, Labelled, Push, Rendezvous, Trouble
from chaosckpt.errors import ChaosckptError, UsageError
from chaosckpt.gate.fence.guard import remove_shared
from chaosckpt.model.operation import Address
from chaosckpt.model.phrasing import describe_path
from chaosckpt.model.schedule import decode_faults
from chaosckpt.plugins import fault_kinds

OnStorage = r.Reset | r.Drop | r.Keep | r.Exchange | r.Discard | r.ListFiles | r.GetManifest | r.Mutate | r.Lose
_ENVELOPES = msgspec.msgpack.Decoder(r.Envelope)


class NodeServer:
    """The loop and what it knows. One attempt at a time."""

    def __init__(self, channel: Channel, settings: NodeSettings) -> None:
        self.channel = channel
        self.settings = settings
        self.selector = selectors.DefaultSelector()
        self.counters = SocketCounters()
        self.trees: list[RankProcess] = []
        """Those of this attempt, in the order of their ranks."""
        self.frozen = False
        self.killed = False
        """Whether all ranks of this attempt were killed."""
        self.stopping = False
        self.order = itertools.count()
        self.progress = Progress()
        self.armed = ArmedFaults(())
        self.launcher = Launcher(settings, channel)
        self.nonces: list[re.Pattern[str]] = []
        self.decode(settings.nonces)
        self.made: set[bytes] = set()
        """Names in shared memory that the command's attempts have made."""

    def run(self) -> None:
        """Serve until told to stop or until the runner's channel ends."""
        wakeup_read, wakeup_write = os.pipe()
        for end in (wakeup_read, wakeup_write):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        self.selector.register(wakeup_read, selectors.EVENT_READ, lambda: self._reap(wakeup_read))
        self.selector.register(self.channel, selectors.EVENT_READ, self._serve_runner)
        if self.launcher.channel is not None:
            self.selector.register(self.launcher.channel, selectors.EVENT_READ, self._serve_fork_server)
        try:
            while not self.stopping:
                self._turn(None)
        finally:
            self._end_attempt()
            self._clear_shared_memory()
            self.launcher.close()

    def _turn(self, timeout_seconds: float | None) -> bool:
        """Handle what is ready. False when nothing was."""
        ready = self.selector.select(timeout_seconds)
        for key, _ in ready:
            if self.selector.get_map().get(key.fd) is key:  # an earlier handler of this turn may have closed it
                key.data()
        return bool(ready)

    def push(self, message: Push | r.Reply) -> None:
        """Tell the runner something, in order: what happened, or what it asked."""
        try:
            self.channel.send(message)
        except OSError:
            self.stopping = True

    # The runner's side

    def _serve_runner(self) -> None:
        payloads = self.channel.feed(wait=False)
        if payloads is None:
            self.stopping = True
            return
        for payload in payloads:
            envelope = _ENVELOPES.decode(payload)
            try:
                value = msgspec.Raw(msgspec.msgpack.encode(self.answer(envelope.request)))
                self.push(r.Reply(envelope.number, value))
            except (ChaosckptError, OSError, msgspec.ValidationError) as error:
                self.push(r.Reply(envelope.number, error=f"{type(error).__name__}: {error}"))

    def answer(self, request: r.Request) -> object:  # noqa: C901 - one line for each request
        """The value of the reply, of the type that the request's class names."""
        match request:
            case r.Start():
                self.start(request.order)
            case r.Meet():
                self.rendezvous(request.place)
            case r.TakeSample():
                return self.sample()
            case r.DescribeThreads():
                return self.describe(request.threads)
            case r.GetPauses():
                return self.progress.pauses()
            case r.Freeze():
                self.freeze()
            case r.Thaw():
                self.thaw()
            case r.Proceed():
                self.proceed(request.rank)
            case r.Kill():
                return self.kill(request.ranks, request.by)
            case r.KillHolder():
                self.kill_holder(request.fault)
            case r.Suspend():
                return self.suspend(request.rank)
            case r.Wake():
                return self.wake(request.rank)
            case r.Terminate():
                self.terminate(request.ranks, request.by)
            case r.Activate():
                self.armed.activate(request.fault, request.on)
            case r.Resume():
                self.resume(request.fault)
            case r.GetRecords():
                return self.records()
            case r.GetCounts():
                return self.counts()
            case r.GetLatest():
                return self.latest()
            case r.GetOutput():
                return self.output()
            case r.Use():
                self.use(request.settings)
            case r.Decode():
                self.decode(request.patterns)
            case _:
                return self.answer_on_storage(request)
        return None

    def answer_on_storage(self, request: OnStorage) -> object:
        """The same for what is asked about the files of a tier, or done to them."""
        match request:
            case r.Reset():
                self.reset(request.directories)
            case r.Drop():
                return storage.empty(Path(request.directory))
            case r.Keep():
                return storage.keep({Path(tier): Path(copy) for tier, copy in request.copies.items()})
            case r.Exchange():
                storage.exchange({Path(tier): Path(copy) for tier, copy in request.copies.items()})
            case r.Discard():
                storage.discard([Path(copy) for copy in request.copies])
            case r.ListFiles():
                return self.inventory(request.tiers)
            case r.GetManifest():
                return self.manifest(request.tier, request.directory)
            case r.Mutate():
                return mutate(request.tier, Path(request.directory), request.mutation, self.decoded)
            case r.Lose():
                return self.lose(request.directory)
        return None

    def start(self, order: AttemptOrder) -> None:
        """Launch the ranks of one attempt."""
        self._end_attempt()
        faults = decode_faults(order.faults, fault_kinds().values())
        self.armed = ArmedFaults(faults, order.step_rank, order.hold_at)
        gate = self.settings.gate
        self.progress = Progress()
        program = order.program
        learns = isinstance(program, CommandProgram) and program.learns
        attempt = NodeAttempt(self.armed, order.record, self.push, self.order, gate, self.nonces, self.progress, learns)
        if isinstance(program, CommandProgram) and program.launch is not None:
            port = self.launcher.new_store() if program.launch.has_agent_store else free_port()
            order = msgspec.structs.replace(order, program=msgspec.structs.replace(program, port=port))
        # The ranks of a command share what is known of it: which save an operation is of shows in those of its peers, too.
        shared = observation_of(order, self.settings, self.made) if isinstance(program, CommandProgram) else None
        for places in _trees(order):
            self._launch(order, places, attempt, shared)
        if self.launcher.channel is not None:
            self._serve_fork_server()  # exits that came in between are with the launcher, and no descriptor tells of them

    def _launch(
        self, order: AttemptOrder, places: Sequence[Place], attempt: NodeAttempt, shared: Observation | None
    ) -> None:
        """Launch one process that runs the ranks of these places."""
        ours, theirs = pair()
        log = Path(self.settings.directory) / f"attempt-{order.attempt}-rank-{places[0].rank}.log"
        tracked = {} if self.settings.command is None else self.settings.command.tracked
        observation = shared or observation_of(order, self.settings, self.made)
        launched = time.monotonic()
        with open(log, "wb") as stream, theirs:
            pid = self.launcher.launch(theirs.fileno(), stream.fileno())
        channel = Channel(ours)
        ranks = [place.rank for place in places]
        process = RankProcess(ranks, pid, channel, log, places[0].tiers | tracked, attempt, observation)
        self.trees.append(process)
        channel.send(RankOrder(settings=self.settings, attempt=order, place=places[0], launched_seconds=launched))
        handler = self._gate_opener(process) if attempt.gated else self._reporter(process)
        self.selector.register(channel, selectors.EVENT_READ, handler)

    def rendezvous(self, place: Rendezvous) -> None:
        """Tell this node's ranks (other than rank 0) where the process group meets."""
        for process in self.trees:
            if 0 not in process.ranks and process.status is None:
                process.tell(place)

    def sample(self) -> r.Sample:
        """What is seen of the ranks at this instant, all that they had asked of their gates being done."""
        for _ in range(1000):
            if not self._turn(0):
                break
        awaited = any(process.awaits_runner for process in self.trees)
        processes: list[tuple[int, set[int]]] = []
        for process in self.trees:
            process.trim_log()
            held = process.held_threads()
            processes.extend((pid, held) for pid in process.tree())
        found = sample(processes, self.counters, self.progress.operations, self.progress.caller)
        return msgspec.structs.replace(found, runner_awaited=awaited)

    def describe(self, threads: Sequence[int]) -> list[str]:
        """Of which rank each of these threads is, what it is called and does; of the one with the last operation, on what that was.

        Without any, of the main thread of each rank.
        """
        found = []
        for thread in threads or [head for tree in self.trees for head in tree.main_threads()]:
            of = [rank for tree in self.trees for rank in tree.ranks_of(thread)]
            owner = f"rank {of[0]}: " if of else ""
            last = self.progress.last if thread == self.progress.caller else None
            found.append(
                f"{owner}{describe(thread)}" + ("" if last is None else f", which works on {describe_path(last.path)}")
            )
        return found

    def freeze(self) -> None:
        """From now on no operation lands: gates stay unserved until the ranks are killed."""
        self.frozen = True
        for process in self.trees:
            if process.gate is not None:
                self._unregister(process.gate)

    def thaw(self) -> None:
        """Serve the gates again that `freeze` left unserved; after a kill of all ranks they stay so."""
        if self.killed:
            return
        self.frozen = False
        for process in self.trees:
            if process.gate is not None and process.status is None:
                self._register_gate(process)

    def proceed(self, rank: int) -> None:
        """Let a rank go on that reported an acknowledgement."""
        for process in self.trees:
            if rank in process.ranks:
                process.proceed()

    def kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        """SIGKILL some ranks, or all (None), and everything that they started. False when none of them is of this node."""
        if ranks is None:
            self.killed = True
            for process in list(self.trees):
                process.kill(by)
            return True
        found = [process.kill_ranks(ranks, by) for process in self.trees if not set(process.ranks).isdisjoint(ranks)]
        return any(found)

    def kill_holder(self, fault: int) -> None:
        """SIGKILL the one process whose operation the fault of this index holds."""
        for process in self.trees:
            process.kill_holder(fault)

    def suspend(self, rank: int) -> bool:
        """SIGSTOP a rank and everything that it started. False when it isn't there."""
        return any(process.suspend(rank) for process in self.trees)

    def wake(self, rank: int) -> bool:
        """SIGCONT a rank that was suspended, and everything that it started. False when it isn't there."""
        return any(process.wake(rank) for process in self.trees)

    def terminate(self, ranks: Sequence[int], by: Cause) -> None:
        """SIGTERM some ranks; a process that runs several gets it as a whole."""
        for process in self.trees:
            if not set(process.ranks).isdisjoint(ranks):
                process.terminate(by)

    def resume(self, fault: int) -> None:
        """Let go what the fault of this index held (-1: a single step)."""
        for process in self.trees:
            process.resume(fault)

    def decoded(self, path: str) -> str:
        """A path without its nonces."""
        return decode_path(path, self.nonces)

    def reset(self, directories: Sequence[str]) -> None:
        """Empty these marked storage directories before a trial."""
        self._clear_shared_memory()
        for path in directories:
            storage.empty(Path(path))

    def _clear_shared_memory(self) -> None:
        """Remove what a killed command left there, which nobody else would: the next trial may ask for the same names."""
        for path in self.made:
            remove_shared(path)
        self.made.clear()

    def inventory(self, tiers: Mapping[str, str]) -> list[tuple[str, int]]:
        """(`tier:path` with nonces decoded, bytes) of every file on these tiers, given as tier -> directory."""
        return [
            (self.decoded(shown), os.lstat(path).st_size)
            for tier, directory in tiers.items()
            for shown, path in storage.files(tier, directory)
        ]

    def manifest(self, tier: str, directory: str) -> list[FileSeen]:
        """(`tier:path` with nonces decoded, bytes, digest of the content) of every file below a tier's directory, sorted."""
        return sorted((self.decoded(shown), size, digest) for shown, size, digest in storage.manifest(tier, directory))

    def lose(self, directory: str) -> int:
        """Die as a machine dies: every process by SIGKILL, then this node's storage; the runner ends this process next."""
        self._end_attempt("fault")
        self.launcher.close()
        return storage.empty(Path(directory))

    def records(self) -> list[list[Labelled]]:
        """What the gates recorded in this attempt, process by process."""
        return [process.records for process in self.trees]

    def counts(self) -> dict[int, int]:
        """Operations performed by each rank of this node. It is asked time and again, so that logs are kept short here."""
        for process in self.trees:
            process.trim_log()
        return {rank: process.counts[rank] for process in self.trees for rank in process.ranks}

    def latest(self) -> dict[int, list[Address]]:
        """The addresses of the last few operations of each rank of this node, oldest first."""
        return {rank: addresses for process in self.trees for rank, addresses in process.latest().items()}

    def output(self) -> r.CommandOutput:
        """What the command of this attempt left to be read; ranks with a target leave nothing so."""
        outputs = [tree.output() for tree in self.trees]
        if not outputs:
            return r.CommandOutput()
        # All but what was printed is known of the command as a whole.
        return msgspec.structs.replace(outputs[0], printed="".join(output.printed for output in outputs))

    def use(self, settings: NodeSettings) -> None:
        """From now on ranks run another target or workload; what the fork server has warmed stays warm."""
        self.settings = msgspec.structs.replace(settings, directory=self.settings.directory, gate=self.settings.gate)

    def decode(self, patterns: Sequence[str]) -> None:
        """From the next attempt on, what these expressions match in a path is read as `*`, as is what the target declares."""
        self.nonces = [re.compile(pattern) for pattern in (*self.launcher.ready.facts.nonces, *patterns)]

    # The ranks' side

    def _gate_opener(self, process: RankProcess) -> Any:
        def opened() -> None:
            if process.open_gate() and process.gate is not None:
                self.selector.modify(process.channel, selectors.EVENT_READ, self._reporter(process))
                if not self.frozen:
                    self._register_gate(process)
            else:
                self._unregister(process.channel)

        return opened

    def _register_gate(self, process: RankProcess) -> None:
        self.selector.register(process.gate, selectors.EVENT_READ, lambda: self._serve_gate(process))  # type: ignore[arg-type]

    def _serve_gate(self, process: RankProcess) -> None:
        if not process.serve_gate() and process.gate is not None:
            self._unregister(process.gate)

    def _reporter(self, process: RankProcess) -> Any:
        def reported() -> None:
            reports = process.readable()
            if reports is None:
                self._unregister(process.channel)
                return
            for report in reports:
                if isinstance(report, Rendezvous):
                    self.rendezvous(report)
                self.push(report)
                process.go_on(report)

        return reported

    def _unregister(self, source: Any) -> None:
        try:
            self.selector.unregister(source)
        except KeyError:
            pass  # it was unregistered before

    def _serve_fork_server(self) -> None:
        exits = self.launcher.exits()
        if exits is None:
            self._unregister(self.launcher.channel)
            self.push(Trouble("the fork server of this node died"))
            return
        for pid, status in exits:
            self._exited(pid, status)

    def _reap(self, wakeup: int) -> None:
        with contextlib.suppress(BlockingIOError):  # a turn within this one has read it
            os.read(wakeup, 4096)
        for pid, status in ended_children():
            self._exited(pid, status)

    def _exited(self, pid: int, status: int) -> None:
        process = next((tree for tree in self.trees if tree.pid == pid and tree.status is None), None)
        if process is None:
            return
        process.status = status
        kill_trees(orphans(pid))  # what it started dies with it, as on a machine of its own
        untraced: tuple[str, ...] = ()
        if process.gate is not None:
            self._unregister(process.gate)
            untraced = tuple(process.gate.untraced)
        self._unregister(process.channel)
        process.close()
        if all(other.status is not None for other in self.trees):
            kill_trees(adopted({self.launcher.pid}))  # and what had taken a session of its own, with the last of them
        for exited in process.ended(untraced):
            self.push(exited)

    def _end_attempt(self, by: Cause = "harness") -> None:
        for process in self.trees:
            process.kill(by)
        while any(process.status is None for process in self.trees) and not self.launcher.dead:
            self._turn(1.0)
        self.trees.clear()
        self.frozen = self.killed = False


def _trees(order: AttemptOrder) -> list[Sequence[Place]]:
    """The places of each process to be launched: rank by rank, unless a command is to start its ranks by itself."""
    if isinstance(order.program, CommandProgram) and order.program.launch is None:
        return [order.places]
    return [(place,) for place in order.places]


def main() -> None:
    """Start, say whether that worked, and serve."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    if len(sys.argv) > 2:
        die_with_parent(int(sys.argv[2]))
    signal.pthread_sigmask(
        signal.SIG_SETMASK, ()
    )  # a Ray worker blocks SIGINT, and its descendants would go on doing so
    os.setsid()
    adopt_orphans()
    try:
        settings = msgspec.msgpack.decode(channel.receive(), type=NodeSettings)
    except EOFError:
        return  # whoever started it was interrupted before it had said anything
    sys.path[:0] = [entry for entry in settings.import_path if entry not in sys.path]
    try:
        if settings.command is not None and settings.command.own_network:
            network.enter()  # while this process has one thread, and nothing of it talks over the network
        node = NodeServer(channel, settings)
    except (ChaosckptError, OSError) as error:
        with contextlib.suppress(OSError):  # the runner may be gone
            channel.send(Refused(str(error), isinstance(error, UsageError)))
        return
    channel.send(node.launcher.ready)
    node.run()
    # Where the runner was killed, nobody else will remove the storage that it had made.
    storage.sweep(Path(settings.directory).parent.parent)


if __name__ == "__main__":
    main()
