"""A process that runs a rank, or several, as its node sees it: channel, gate, log, end, and all that it started."""

from __future__ import annotations

import functools
import os
import re
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaosckpt.commands.launches import Executed
from chaosckpt.commands.random_names import without_random
from chaosckpt.engine.node.armed import ArmedFaults, Strike
from chaosckpt.engine.node.observation import Observation
from chaosckpt.engine.node.phase import Boundaries, Phase
from chaosckpt.engine.node.progress import Progress
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.process_tree import descendants, kill_trees
from chaosckpt.engine.wire.reports import Cause, Exited, Held, Labelled, Push, Rendezvous, Report, Stepping, Struck
from chaosckpt.engine.wire.requests import CommandOutput
from chaosckpt.gate.kernel import release
from chaosckpt.gate.supervisor import Gate, Root
from chaosckpt.model.fault import Decision, Errno, Hide, Hold, Short
from chaosckpt.model.file_names import printable
from chaosckpt.model.journal import Acknowledged
from chaosckpt.model.operation import Address, Operation, step_address

LOG_BYTES = 4 << 20
"""Of what a command printed, so much is kept: the end."""
_DECODED_PATHS = 1024
"""Paths whose decoded form is remembered: an operation names mostly one that was named just before, and patterns can be many."""
LATEST = 6
"""Operations whose addresses are kept to tell how far a rank has come; more than may come or not as ranks race."""
_REPORTS: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


class NodeAttempt(NamedTuple):
    """What all rank processes of one attempt on this node share."""

    armed: ArmedFaults
    record: str
    push: Callable[[Push], None]
    order: Iterator[int]
    """Counts the operations of all of them."""
    gated: bool
    nonces: Sequence[re.Pattern[str]]
    progress: Progress
    learns: bool = False
    """Whether it is noted how ranks are started that a process starts by itself."""


class RankProcess:
    """A live or ended process tree that runs some ranks. The node's loop calls `readable` and `serve_gate` when its descriptors are.

    A rank of a training job is a process of its own. A command is one process, too, however many `ranks` it starts by itself: the gate
    finds the process of each by its environment, and what is done to a rank is done to that one with all that it started.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        pid: int,
        channel: Channel,
        log: Path,
        tiers: Mapping[str, str],
        attempt: NodeAttempt,
        observation: Observation,
    ) -> None:
        self.ranks = tuple(ranks)
        self.pid = pid
        self.channel = channel
        self.log = log
        self.gate: Gate | None = None
        self.observation = observation
        self.by: Cause = "self"
        self.status: int | None = None
        self.counts: Counter[int] = Counter()
        """Operations performed by each rank."""
        self.records: list[Labelled] = []
        self._tiers = tiers
        self._attempt = attempt
        self._trimmed = 0
        self._latest: deque[Address] = deque(maxlen=LATEST)
        self._stopped: set[int] = set()
        self._open = not attempt.gated
        self._boundaries = None if attempt.gated else Boundaries(self.first)
        self._held_reports: list[Strike] = []
        self._untold: Rendezvous | None = None
        self._acknowledged: Acknowledged | None = None
        """What its rank reported and is not to go on from before the trial runner says so."""
        self._strikes: dict[int, Strike] = {}
        self._announced: set[tuple[int, int, int]] = set()
        self._executed: tuple[Executed, ...] = ()

    @property
    def first(self) -> int:
        """Its only rank, or the first of several."""
        return self.ranks[0]

    @property
    def phase(self) -> Phase:
        """What its ranks are doing now."""
        return self.observation.phase

    def open_gate(self) -> bool:
        """Take over the listener that the rank hands out first of all. False when it died before."""
        try:
            payload, descriptors, _, _ = socket.recv_fds(self.channel.connection, 64, 1)
        except ConnectionResetError:
            return False
        if not descriptors:
            return False
        base, limit, wait_killable = msgspec.msgpack.decode(payload, type=tuple[int, int, bool])
        self.gate = Gate(
            descriptors[0],
            base=base,
            limit=limit,
            rank=self.first,
            roots=[Root(tier, path) for tier, path in sorted(self._tiers.items())],
            decide=self._decide,
            observe=self._observe,
            keep_data=self._attempt.record == "data",
            decode=functools.lru_cache(_DECODED_PATHS)(lambda path: decode_path(path, self._attempt.nonces)),
            wait_killable=wait_killable,
            hidden=self._hidden,
            low_descriptors=self.observation.low_descriptors,
            guard=self.observation.guard,
            many_ranks=len(self.ranks) > 1 or self._attempt.learns,
        )
        if not self._answer(b"g"):
            return False
        self._open = True
        if self._untold is not None:
            self.tell(self._untold)
        return True

    def readable(self) -> list[Report] | None:
        """The reports that the trial runner is to know; None at the end of the channel. Each must be acknowledged by `go_on`."""
        payloads = self.channel.feed(wait=False)
        if payloads is None:
            return None
        reports = [_REPORTS.decode(payload) for payload in payloads]
        return [report for report in reports if self.observation.reported(report)]

    @property
    def awaits_runner(self) -> bool:
        """Whether a rank waits for `proceed`: it moves as soon as the trial runner has taken note."""
        return self._acknowledged is not None and self.status is None

    def proceed(self) -> None:
        """Let the rank go on that waits for the trial runner, if there is one."""
        if self._acknowledged is not None:
            report, self._acknowledged = self._acknowledged, None
            self._go_on(report)

    def go_on(self, report: Report) -> None:
        """Let the rank go on after a report, at once, or after an acknowledgement when the trial runner says so (`proceed`)."""
        if isinstance(report, Acknowledged):
            self._acknowledged = report
        else:
            self._go_on(report)

    def _go_on(self, report: Report) -> None:
        """Where no fault holds it: before a training step, or without a gate anywhere."""
        if isinstance(report, Stepping):
            address = step_address(self.first, report.step)
            if self._holds_report(Operation(address=address, sequence=0, raw=address.path, result=0)):
                return
        elif (
            self._boundaries is not None
            and not isinstance(report, Rendezvous)
            and self.phase.name in ("save", "recover")
        ):
            operation = self._boundaries.operation(report, self.phase)
            held = self._holds_report(operation)
            self._observe(operation)
            if held:
                return
        self._answer(b"k")

    def _holds_report(self, operation: Operation) -> bool:
        """Whether a fault holds the rank at a report, which is then told; it goes on at `resume`."""
        strike = self._attempt.armed.strike(operation)
        if strike is None or not isinstance(strike.decision, Hold):
            return False
        self._held_reports.append(strike)
        self._attempt.push(Held(strike.fault, strike.trigger, operation, self.phase.label))
        return True

    def tell(self, rendezvous: Rendezvous) -> None:
        """Tell the rank where the process group meets, as soon as it has passed its gate."""
        if not self._open:
            self._untold = rendezvous
            return
        try:
            self.channel.send(rendezvous)
        except OSError:
            pass  # it died meanwhile; its exit is reported by itself

    def _answer(self, byte: bytes) -> bool:
        try:
            self.channel.connection.sendall(byte)
        except OSError:
            return False  # it died meanwhile; its exit is reported by itself
        return True

    def serve_gate(self) -> bool:
        """Handle one notification, and announce what is held by it. False when the gate is gone."""
        if self.gate is None:
            return False
        alive = self.gate.serve()
        for held in self.gate.holds:
            strike = self._strikes[held.operation.sequence]
            place = (held.operation.sequence, strike.fault, strike.trigger)
            if place not in self._announced and (strike.trigger >= 0 or strike.fault < 0):
                self._announced.add(place)
                self._attempt.push(
                    Held(
                        strike.fault, strike.trigger, _without_data(held.operation), self.phase.label_of(held.operation)
                    )
                )
        return alive

    def resume(self, fault: int) -> None:
        """Perform and answer what this fault held; the rank goes on."""
        for strike in [strike for strike in self._held_reports if strike.fault == fault]:
            self._held_reports.remove(strike)
            self._answer(b"k")
        if self.gate is not None:
            for held in list(self.gate.holds):
                if self._strikes[held.operation.sequence].fault == fault:
                    self.gate.resume(held)

    def _decide(self, operation: Operation) -> Decision:
        self.phase.see(operation)
        strike = self._attempt.armed.strike(operation)
        if strike is None:
            return None
        decision = strike.decision
        if isinstance(decision, Hold | Hide):
            self._strikes[operation.sequence] = strike
        elif isinstance(decision, Errno):
            name = os.strerror(decision.number)
            self._attempt.push(
                Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), name, strike.first)
            )
        elif isinstance(decision, Short):
            words = f"only {decision.length} of {operation.length} bytes written"
            self._attempt.push(
                Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), words, strike.first)
            )
        return decision

    def _hidden(self, operation: Operation, names: Sequence[str]) -> None:
        """A listing really lacked entries: only that is evidence."""
        strike, words = self._strikes[operation.sequence], f"listed without {', '.join(map(printable, names))}"
        self._attempt.push(
            Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), words, strike.first)
        )

    def _observe(self, operation: Operation) -> None:
        if operation.part == 0:  # a large write kept with its data comes in parts
            self.counts[operation.address.rank] += 1
            self._latest.append(operation.address)
            caller = self.pid if self.gate is None else self.gate.caller
            self._attempt.progress.note(operation, caller, time.monotonic())
            self.observation.performed(operation)
        if self._attempt.record != "nothing":
            phase = self.phase
            self.records.append(
                Labelled(operation, next(self._attempt.order), phase.name, phase.step_of(operation), phase.stage)
            )

    def latest(self) -> dict[int, list[Address]]:
        """The addresses of the last few operations of each rank, oldest first."""
        return {rank: [address for address in self._latest if address.rank == rank] for rank in self.ranks}

    # Its processes

    def tree(self) -> list[int]:
        """All that can still go on: this process and its descendants, without suspended ranks.

        Once several ranks are told apart, what only watches over them is left out: it never comes to rest.
        """
        if self.status is not None or len(self._stopped) == len(self.ranks):
            return []
        heads = self._heads()
        if not heads:
            return descendants(self.pid)
        return [pid for rank, head in heads.items() if rank not in self._stopped for pid in descendants(head)]

    def _heads(self) -> dict[int, int]:
        """The process of each rank, where several are told apart."""
        return self.gate.ranks() if self.gate is not None and len(self.ranks) > 1 else {}

    def _head(self, rank: int) -> int | None:
        """The process that is this rank with all that it started; the only rank is this process itself."""
        if self.status is not None or rank not in self.ranks:
            return None
        return self.pid if len(self.ranks) == 1 else self._heads().get(rank)

    def ranks_of(self, thread: int) -> list[int]:
        """The rank to which this thread belongs; none, where it is of no rank or of another tree."""
        heads = self._heads() or {self.first: self.pid}
        return [
            rank
            for rank, head in heads.items()
            if any(os.path.exists(f"/proc/{pid}/task/{thread}") for pid in descendants(head))
        ]

    def main_threads(self) -> list[int]:
        """That of each rank; none once it has ended."""
        return [] if self.status is not None else list(self._heads().values()) or [self.pid]

    def held_threads(self) -> set[int]:
        return set(self.gate.held_threads()) if self.gate is not None else set()

    def kill(self, by: Cause) -> None:
        """SIGKILL the whole tree."""
        if self.status is None:
            if self.by == "self":
                self.by = by
            kill_trees([self.pid])

    def kill_ranks(self, ranks: Collection[int], by: Cause) -> bool:
        """SIGKILL those of these ranks that are its own; all of them are the whole tree. False where none of them is alive."""
        if set(self.ranks) <= set(ranks):
            alive = self.status is None
            self.kill(by)
            return alive
        heads = [head for rank in ranks if (head := self._head(rank)) is not None]
        if self.pid in heads:
            self.kill(by)
        else:
            kill_trees(heads)
        return bool(heads)

    def kill_holder(self, fault: int) -> None:
        """SIGKILL the process, one of several of this rank, whose operation this fault holds."""
        for held in list(self.gate.holds) if self.gate is not None else ():
            if self._strikes[held.operation.sequence].fault == fault:
                kill_trees([held.pid])

    def suspend(self, rank: int) -> bool:
        """SIGSTOP a rank and all that it started. Its end, whenever it comes, is by a fault. False when it isn't there."""
        self._stopped |= {rank} if (found := self._signal(rank, signal.SIGSTOP)) else set()
        return found

    def wake(self, rank: int) -> bool:
        """SIGCONT a rank that was suspended, and all that it started. False when it isn't there."""
        self._stopped -= {rank} if (found := self._signal(rank, signal.SIGCONT)) else set()
        return found

    def _signal(self, rank: int, number: signal.Signals) -> bool:
        head = self._head(rank)
        if head is None:
            return False
        self.by = "fault"
        for pid in descendants(head):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # it ended meanwhile
        return True

    def terminate(self, by: Cause) -> None:
        """SIGTERM to the process itself, as a scheduler or a launcher sends it."""
        if self.status is None:
            if self.by == "self":
                self.by = by
            with suppress(ProcessLookupError):  # it has ended, and the fork server has yet to tell
                os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """Free what belongs to an ended rank."""
        if self.gate is not None:
            self._executed = tuple(Executed(*found) for found in self.gate.executions)
            self.gate.close()
            self.gate = None
        self.channel.close()

    def ended(self, untraced: tuple[str, ...]) -> list[Exited]:
        """What the runner is told once this process is reaped: its ranks have ended with it. The gate's notes stand with the first."""
        assert self.status is not None
        tail = self.end_of_log(self.observation.tail_bytes)
        return [
            Exited(rank, self.status, self.by, tail, self.counts[rank], untraced if rank == self.first else ())
            for rank in self.ranks
        ]

    def output(self) -> CommandOutput:
        """What its program left to be read beside its files."""
        return self.observation.output(self.end_of_log(LOG_BYTES), self._executed)

    def trim_log(self) -> None:
        """Give back the space of what it printed, but for the end that is kept: a program may print without end."""
        with suppress(OSError):  # a file system without holes keeps all
            spare = os.stat(self.log).st_size - 2 * LOG_BYTES
            if spare > self._trimmed + LOG_BYTES:
                with open(self.log, "r+b") as stream:
                    release(stream.fileno(), spare)
                self._trimmed = spare

    def end_of_log(self, most_bytes: int) -> str:
        """The last so many bytes of what it printed."""
        try:
            with open(self.log, "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - most_bytes))
                return stream.read().decode(errors="replace")
        except OSError:
            return ""


def _without_data(operation: Operation) -> Operation:
    raw, destination = printable(operation.raw), operation.destination and printable(operation.destination)
    return msgspec.structs.replace(operation, data=None, raw=raw, destination=destination)


def decoded_by(nonces: Sequence[str]) -> Callable[[Sequence[str]], list[str]]:
    """What reads as `*`, in each of some paths, the parts that match one of these expressions."""
    patterns = [re.compile(pattern) for pattern in nonces]
    return lambda paths: [decode_path(path, patterns) for path in paths]


def decode_path(path: str, nonces: Sequence[re.Pattern[str]]) -> str:
    """A path with the parts that differ from run to run read as `*`."""
    return printable(without_random(path, nonces))
