"""The node process: one event loop that owns a fork server, the gates of its ranks and its node-local storage.

Run as `python -m chaosckpt.engine.node FD [PARENT]`, where FD is its end of the trial runner's channel. It imports no
torch. Whatever it started ends when that channel does, or with the process PARENT that started it.

Verbs (each a method `do_VERB`): start, rendezvous, look, rest, freeze, kill, terminate, resume, reset, drop, records,
counts, latest, inventory, lose, use, stop.
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
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.engine import storage
from chaosckpt.engine.armed import ArmedFaults
from chaosckpt.engine.channel import Channel, pair
from chaosckpt.engine.disturbing import mutate
from chaosckpt.engine.launcher import Launcher
from chaosckpt.engine.lineage import adopt_orphans, adopted, die_with_parent, ended_children, kill_trees, orphans
from chaosckpt.engine.messages import (
    AttemptOrder,
    NodeSettings,
    Push,
    RankOrder,
    Rendezvous,
    Reply,
    Request,
    Trouble,
)
from chaosckpt.engine.rank_process import Cause, RankProcess, decode_path
from chaosckpt.engine.rest import Look, SocketCounters, look
from chaosckpt.errors import ChaosckptError, HarnessError
from chaosckpt.model.mutation import Mutated, Mutation
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import decode_faults
from chaosckpt.plugins import fault_kinds


class Node:
    """The loop and what it knows. One attempt at a time."""

    def __init__(self, channel: Channel, settings: NodeSettings) -> None:
        self.channel = channel
        self.settings = settings
        self.selector = selectors.DefaultSelector()
        self.counters = SocketCounters()
        self.ranks: dict[int, RankProcess] = {}
        self.by_pid: dict[int, RankProcess] = {}
        self.frozen = False
        self.stopping = False
        self.order = itertools.count()
        self.armed = ArmedFaults(())
        self.launcher = Launcher(settings, channel)
        self.nonces = [re.compile(pattern) for pattern in self.launcher.facts.nonces]

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
            self.launcher.close()

    def _turn(self, timeout_seconds: float | None) -> bool:
        """Handle what is ready. False when nothing was."""
        ready = self.selector.select(timeout_seconds)
        for key, _ in ready:
            if self.selector.get_map().get(key.fd) is key:  # an earlier handler of this turn may have closed it
                key.data()
        return bool(ready)

    def push(self, message: Push) -> None:
        """Tell the runner something, in order."""
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
            request = msgspec.msgpack.decode(payload, type=Request)
            try:
                value = getattr(self, f"do_{request.verb}")(request.arguments)
                self.push_reply(Reply(request.number, value))
            except (ChaosckptError, OSError, msgspec.ValidationError) as error:
                self.push_reply(Reply(request.number, error=f"{type(error).__name__}: {error}"))

    def push_reply(self, reply: Reply) -> None:
        try:
            self.channel.send(reply)
        except OSError:
            self.stopping = True

    def do_start(self, arguments: Any) -> None:
        """Launch the ranks of one attempt."""
        self._end_attempt()
        order = msgspec.convert(arguments, AttemptOrder)
        self.armed = ArmedFaults(decode_faults(order.faults, fault_kinds().values()), order.step_rank)
        for place in order.places:
            ours, theirs = pair()
            log = Path(self.settings.directory) / f"attempt-{order.attempt}-rank-{place.rank}.log"
            launched = time.monotonic()
            with open(log, "wb") as stream, theirs:
                pid = self.launcher.launch(theirs.fileno(), stream.fileno())
            channel = Channel(ours)
            process = RankProcess(
                place, pid, channel, log, self.armed, order.record, self.push, self.order, self.settings.gate
            )
            self.ranks[place.rank] = self.by_pid[pid] = process
            channel.send(RankOrder(settings=self.settings, attempt=order, place=place, launched_seconds=launched))
            if self.settings.gate:
                handler = self._gate_opener(process)
            else:
                handler = self._reporter(process)
            self.selector.register(channel, selectors.EVENT_READ, handler)
        if self.launcher.channel is not None:
            self._serve_fork_server()  # exits that came in between are with the launcher, and no descriptor tells of them

    def do_rendezvous(self, arguments: Any) -> None:
        """Tell this node's ranks (other than rank 0) where the process group meets."""
        place = msgspec.convert(arguments, Rendezvous)
        for process in self.ranks.values():
            if process.rank != 0 and process.status is None:
                process.tell(place)

    def do_look(self, arguments: Any) -> Any:
        """One look for rest: None while anything moves, else a value that is equal at the next look if nothing moved between."""
        for _ in range(1000):
            if not self._turn(0):
                break
        seen = self._look()
        return None if seen is None else [seen, sum(process.operations for process in self.ranks.values())]

    def do_rest(self, arguments: Any) -> bool:
        """Whether the ranks of this node, being all of the attempt, are at rest."""
        first = self.do_look(None)
        return first is not None and first == self.do_look(None)

    def _look(self) -> Look | None:
        processes: list[tuple[int, set[int]]] = []
        for process in self.ranks.values():
            if process.suspended:
                continue  # it goes no further, and what it is sent lies unread
            held = process.held_threads()
            processes.extend((pid, held) for pid in process.tree())
        return look(processes, self.counters)

    def do_freeze(self, arguments: Any) -> None:
        """From now on no operation lands: gates stay unserved until the ranks are killed."""
        self.frozen = True
        for process in self.ranks.values():
            if process.gate is not None:
                self._unregister(process.gate)

    def process_of(self, rank: int) -> RankProcess | None:
        """The process tree in which this rank lives, if it is of this node."""
        return self.ranks.get(rank)

    def do_kill(self, arguments: Any) -> bool:
        """SIGKILL some ranks, or all (None), and everything that they started. False when none of them is of this node."""
        ranks, by = msgspec.convert(arguments, tuple[list[int] | None, Cause])
        if ranks is None:
            for process in list(self.ranks.values()):
                process.kill(by)
            return True
        trees = [(rank, self.process_of(rank)) for rank in ranks]
        found = [tree.kill_rank(rank, by) for rank, tree in trees if tree is not None]
        return any(found)

    def do_kill_process(self, arguments: Any) -> None:
        """SIGKILL the one process whose operation the fault of this index holds."""
        for process in self.ranks.values():
            process.kill_holder(arguments)

    def do_suspend(self, arguments: Any) -> bool:
        """SIGSTOP a rank and everything that it started. Its end, whenever it comes, is by a fault. False when it isn't there."""
        tree = self.process_of(arguments)
        return tree is not None and tree.signal_rank(arguments, signal.SIGSTOP)

    def do_wake(self, arguments: Any) -> bool:
        """SIGCONT a rank that was stopped, and everything that it started. False when it isn't there."""
        tree = self.process_of(arguments)
        return tree is not None and tree.signal_rank(arguments, signal.SIGCONT)

    def do_terminate(self, arguments: Any) -> None:
        """SIGTERM some ranks."""
        for process in self.ranks.values():
            if process.rank in arguments and process.status is None:
                process.by = "fault"
                os.kill(process.pid, signal.SIGTERM)

    def do_activate(self, arguments: Any) -> None:
        """The fault of this index is in force from now on, or is over (its Memory.took_effect)."""
        index, on = msgspec.convert(arguments, tuple[int, bool])
        self.armed.activate(index, on)

    def do_resume(self, arguments: Any) -> None:
        """Let go what the fault of this index held (-1: the ladder)."""
        for process in self.ranks.values():
            process.resume(arguments)

    def do_reset(self, arguments: Any) -> None:
        """Empty these marked storage directories before a trial."""
        for path in arguments:
            storage.empty(Path(path))

    def do_drop(self, arguments: Any) -> int:
        """Empty one marked storage directory as a fault; returns how many files it held."""
        return storage.empty(Path(arguments))

    def do_inventory(self, arguments: Any) -> list[tuple[str, int]]:
        """(`tier:path` with nonces decoded, bytes) of every file on these tiers, given as tier -> directory."""
        return [
            (decode_path(shown, self.nonces), os.lstat(path).st_size)
            for tier, directory in arguments.items()
            for shown, path in storage.files(tier, directory)
        ]

    def do_mutate(self, arguments: Any) -> list[Mutated]:
        """Change what lies in a tier's marked directory as a fault; returns what was changed."""
        tier, root, mutation = msgspec.convert(arguments, tuple[str, str, Mutation])
        return mutate(tier, Path(root), mutation, lambda path: decode_path(path, self.nonces))

    def do_lose(self, arguments: Any) -> int:
        """Die as a machine dies: every process by SIGKILL, then this node's storage; the runner ends this process next."""
        self._end_attempt("fault")
        self.launcher.close()
        return storage.empty(Path(arguments))

    def do_records(self, arguments: Any) -> Any:
        """What the gates recorded in this attempt, rank by rank."""
        return [process.records for _, process in sorted(self.ranks.items())]

    def do_counts(self, arguments: Any) -> dict[int, int]:
        """Operations performed by each rank of this node."""
        return {rank: process.operations for rank, process in sorted(self.ranks.items())}

    def do_latest(self, arguments: Any) -> dict[int, list[Address]]:
        """The addresses of the last few operations of each rank of this node, oldest first."""
        return {rank: list(process.latest) for rank, process in sorted(self.ranks.items())}

    def do_use(self, arguments: Any) -> None:
        """From now on ranks run another target or workload; what the fork server has warmed stays warm."""
        self.settings = msgspec.structs.replace(
            msgspec.convert(arguments, NodeSettings), directory=self.settings.directory, gate=self.settings.gate
        )

    def do_stop(self, arguments: Any) -> None:
        """End this process and all that it started."""
        self.stopping = True

    # The ranks' side

    def _gate_opener(self, process: RankProcess) -> Any:
        def opened() -> None:
            if process.open_gate(self.nonces) and process.gate is not None:
                self.selector.modify(process.channel, selectors.EVENT_READ, self._reporter(process))
                if not self.frozen:
                    self.selector.register(process.gate, selectors.EVENT_READ, lambda: self._serve_gate(process))
            else:
                self._unregister(process.channel)

        return opened

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
                    self.do_rendezvous(msgspec.to_builtins(report))
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
            self.push(Trouble("the fork server of this node has died"))
            return
        for pid, status in exits:
            self._exited(pid, status)

    def _reap(self, wakeup: int) -> None:
        os.read(wakeup, 4096)
        for pid, status in ended_children():
            self._exited(pid, status)

    def _exited(self, pid: int, status: int) -> None:
        process = self.by_pid.get(pid)
        if process is None or process.status is not None:
            return
        process.status = status
        kill_trees(orphans(pid))  # what it started dies with it, as on a machine of its own
        untraced: tuple[str, ...] = ()
        if process.gate is not None:
            self._unregister(process.gate)
            untraced = tuple(process.gate.untraced)
        self._unregister(process.channel)
        process.close()
        if all(other.status is not None for other in self.ranks.values()):
            kill_trees(adopted({self.launcher.pid}))  # and what had taken a session of its own, with the last of them
        for exited in process.ended(untraced):
            self.push(exited)

    def _end_attempt(self, by: Cause = "harness") -> None:
        for process in self.ranks.values():
            process.kill(by)
        while any(process.status is None for process in self.ranks.values()) and not self.launcher.dead:
            self._turn(1.0)
        self.ranks.clear()
        self.by_pid.clear()
        self.frozen = False


def _kind(settings: NodeSettings) -> type[Node]:
    if settings.script is None:
        return Node
    from chaosckpt.engine.script_node import ScriptNode

    return ScriptNode


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
        node = _kind(settings)(channel, settings)
    except (ChaosckptError, OSError) as error:
        code = error.exit_code if isinstance(error, ChaosckptError) else HarnessError.exit_code
        with contextlib.suppress(OSError):  # the runner may be gone
            channel.send(Reply(0, code, error=str(error)))
        return
    channel.send(Reply(0, [node.launcher.facts, node.launcher.modules]))
    node.run()
    # Where the runner was killed, nobody else will remove the storage that it had made.
    storage.sweep(Path(settings.directory).parent.parent)


if __name__ == "__main__":
    main()
