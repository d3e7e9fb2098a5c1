"""The ranks of one attempt on the nodes that carry them: launched, listened to, killed; who lives, and how each ended."""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.node_client import Inbox, Node
from chaosckpt.engine.runner.quiescence import Quiescence, QuiescenceWatch
from chaosckpt.engine.wire.orders import AttemptOrder, Place
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.engine.wire.reports import Cause, Exited, Push, Rendezvous, Trouble
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.topology import Topology

Record = Callable[[j.AnyEvent], None]
TICK_SECONDS = 1.0
SAMPLE_SECONDS = 0.002
LAUNCHER_SECONDS = 0.1
"""So long it takes torchrun to notice that a rank has ended (--monitor-interval)."""


class NotArrived(Exception):
    """The job did not come to the place where a fault was to be injected."""


class Ranks:
    """All ranks of an attempt. What their nodes report goes to `hear`, but for what only concerns the ranks' own lives.

    `stopped` are those that a fault has stopped; `codes` the exit codes of those that have ended (None: by a signal). `operations` and
    `last_progress` are as new as the last report or count. `survivors_until`, once it is set, is the end of the grace of a job that
    lost a rank.
    """

    def __init__(
        self,
        arena: Arena,
        topology: Topology,
        attempt: int,
        record: Record,
        hear: Callable[[Push], None],
        deadlines: Deadlines,
    ) -> None:
        self.arena = arena
        self.topology = topology
        self.nodes: list[Node] = []
        self.operations = [0] * topology.world_size
        self.alive: set[int] = set()
        self.stopped: set[int] = set()
        self.codes: dict[int, int | None] = {}
        self.started = 0.0
        self.last_progress = 0.0
        self.survivors_until: float | None = None
        self._attempt = attempt
        self._record = record
        self._hear = hear
        self._deadlines = deadlines
        self._watch = QuiescenceWatch(deadlines)
        self._inbox: Inbox = queue.SimpleQueue()
        self._launched_for_launcher = False
        self._terminate_at: float | None = None

    def launch(self, order: AttemptOrder, hold_steps: Mapping[int, tuple[int, ...]]) -> None:
        """Start every rank of the topology on its node."""
        count = len(self.topology.ranks)
        self.nodes = self.arena.distinct(count)
        program = order.program
        self._launched_for_launcher = isinstance(program, CommandProgram) and program.launch is not None
        started = time.monotonic()
        for node in self.nodes:
            node.inbox = self._inbox
            numbers = [number for number in range(count) if self.arena.nodes[number] is node]
            places = tuple(self._place(number, rank) for number in numbers for rank in self.topology.ranks_on(number))
            node.start(msgspec.structs.replace(order, places=places, address=node.address, hold_steps=dict(hold_steps)))
        self.alive = set(range(self.topology.world_size))
        self.started = self.last_progress = started

    def _place(self, number: int, rank: int) -> Place:
        return Place(rank, number, rank - self.topology.ranks_on(number).start, self.arena.tiers(number))

    # What the nodes report

    def pump(self, timeout_seconds: float) -> bool:
        """Take in what the nodes report, waiting for the first report so long. False when none came."""
        if self._terminate_at is not None:
            timeout_seconds = max(0.0, min(timeout_seconds, self._terminate_at - time.monotonic()))
        try:
            node, message = self._inbox.get(timeout=timeout_seconds)
        except queue.Empty:
            self._end_survivors()
            return False
        self.last_progress = time.monotonic()
        self._take(node, message)
        self.drain()
        return True

    def drain(self) -> None:
        """Take in what has been reported already."""
        while True:
            try:
                node, message = self._inbox.get_nowait()
            except queue.Empty:
                return
            self._take(node, message)

    def _take(self, node: Node, message: Push) -> None:
        if node not in self.nodes:
            return  # a node that was lost on purpose
        match message:
            case Rendezvous():
                for other in self.nodes:
                    if other is not node:
                        other.rendezvous(message)
            case Exited():
                self._exited(message)
            case Trouble():
                raise HarnessError(message.what)
            case j.Acknowledged():
                self._hear(message)
                node.proceed(message.rank)  # only now may it go on to a save that takes the place of this one
            case _:
                self._hear(message)

    def _exited(self, exited: Exited) -> None:
        self.gone(exited.rank, exited.status, exited.by, exited.stderr_tail)
        self.operations[exited.rank] = exited.operations
        for what in exited.untraced:
            # The gate's notes are sentences; of a ring for asynchronous operations, or of a signal, it says that it was refused.
            refused = what.endswith(("was refused with ENOSYS", "was refused"))
            self._record(j.Untraced(attempt=self._attempt, rank=exited.rank, what=what, refused=refused))

    def gone(self, rank: int, status: int, by: Cause, stderr_tail: str = "") -> None:
        """A rank ended with this wait status."""
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        self.alive.discard(rank)
        self.codes[rank] = code
        tail = stderr_tail if code else ""
        self._record(
            j.RankExited(attempt=self._attempt, rank=rank, exit_code=code, signal=signal, by=by, stderr_tail=tail)
        )
        if self._launched_for_launcher and code != 0 and self.alive and self._terminate_at is None:
            self._terminate_at = time.monotonic() + LAUNCHER_SECONDS

    def _end_survivors(self) -> None:
        """Do what a launcher does once a rank has ended badly: SIGTERM to the others, and SIGKILL after a grace."""
        if self._terminate_at is None or time.monotonic() < self._terminate_at or not self.alive:
            return
        self._terminate_at = math.inf
        for node in self.nodes:
            node.terminate(sorted(self.alive - self.stopped), "harness")
        self.survivors_until = max(self.survivors_until or 0.0, time.monotonic() + self._deadlines.grace_seconds)

    # How far they are

    def counts(self) -> tuple[int, ...]:
        """Operations performed so far by each rank."""
        for node in self.nodes:
            for rank, number in node.counts().items():
                self.operations[rank] = number
        return tuple(self.operations)

    def note_progress(self, now: float) -> None:
        """Ranks that perform operations get somewhere, though they report nothing."""
        before = tuple(self.operations)
        if self.counts() != before:
            self.last_progress = now

    def quiescence(self) -> Quiescence | None:
        """Whether no rank can go further by itself, by this and earlier calls (chaosckpt/engine/runner/quiescence.py)."""
        rest = self._look()
        return self._look() if rest is None and self._watch.still else rest

    def _look(self) -> Quiescence | None:
        return self._watch.see([node.sample() for node in self.nodes], time.monotonic())

    def await_quiescence(self) -> Quiescence:
        """Return when no rank can go further by itself. Raises NotArrived, saying why, where they don't come to that in time."""
        until = time.monotonic() + self._deadlines.rest_seconds
        self._watch.forget()
        while (rest := self.quiescence()) is None:
            if time.monotonic() > until:
                raise NotArrived(f"the ranks did not come to rest ({self.disturber()})")
            self.pump(SAMPLE_SECONDS)
        self.drain()
        return rest

    def disturber(self) -> str:
        """What keeps the ranks from coming to rest, in words."""
        found = self._watch.disturbers
        if not found:
            return "bytes moved on their TCP connections, or lay unread there"
        node, thread = found[0]
        return self.nodes[node].describe([thread])[0]

    # Their end

    def kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        """SIGKILL some ranks, or all (None). False when no node has any of them."""
        found = [node.kill(ranks, by) for node in self.nodes]
        return any(found)
