"""One rank's process as its node sees it: channel, gate, phase, log and end."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.engine.gate.supervisor import Gate, Root
from chaosckpt.engine.node.armed import ArmedFaults, Strike
from chaosckpt.engine.node.boundaries import Boundaries
from chaosckpt.engine.node.phase import Phase
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import Place
from chaosckpt.engine.wire.process_tree import descendants, kill_trees
from chaosckpt.engine.wire.reports import Cause, Exited, Held, Labelled, Push, Rendezvous, Report, Stepping, Struck
from chaosckpt.model.decision import Decision, Errno, Hide, Hold, Short
from chaosckpt.model.operation import Address, Operation, step_address
from chaosckpt.model.random_names import without_random

TAIL_BYTES = 2000
LATEST = 6
"""Operations whose addresses are kept to tell how far a rank has come; more than may come or not as ranks race."""
_REPORTS: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


class RankProcess:
    """A live or ended rank. The node's loop calls `readable` and `serve_gate` when its descriptors are."""

    def __init__(
        self,
        place: Place,
        pid: int,
        channel: Channel,
        log: Path,
        armed: ArmedFaults,
        record: str,
        push: Callable[[Push], None],
        order: Iterator[int],
        gated: bool,
    ) -> None:
        self.place = place
        self.rank = place.rank
        self.pid = pid
        self.channel = channel
        self.log = log
        self.gate: Gate | None = None
        self.phase = Phase()
        self.by: Cause = "self"
        self.status: int | None = None
        self.suspended = False
        self.operations = 0
        self.latest: deque[Address] = deque(maxlen=LATEST)
        self.records: list[Labelled] = []
        self._armed = armed
        self._record = record
        self._push = push
        self._order = order
        self._open = not gated
        self._boundaries = None if gated else Boundaries(place.rank)
        self._held_reports: list[Strike] = []
        self._untold: Rendezvous | None = None
        self._strikes: dict[int, Strike] = {}
        self._announced: set[tuple[int, int, int]] = set()

    def open_gate(self, nonces: Sequence[re.Pattern[str]]) -> bool:
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
            rank=self.rank,
            roots=[Root(tier, path) for tier, path in sorted(self.place.tiers.items())],
            decide=self._decide,
            observe=self._observe,
            keep_data=self._record == "data",
            decode=lambda path: decode_path(path, nonces),
            wait_killable=wait_killable,
            hidden=self._hidden,
            **self.gate_options(),
        )
        if not self._answer(b"g"):
            return False
        self._open = True
        if self._untold is not None:
            self.tell(self._untold)
        return True

    def gate_options(self) -> dict[str, Any]:
        """What a gate is told beside what every gate is told."""
        return {}

    def readable(self) -> list[Report] | None:
        """The reports that arrived; None at the end of the channel. Each must be acknowledged by `go_on`."""
        payloads = self.channel.feed(wait=False)
        if payloads is None:
            return None
        reports = [_REPORTS.decode(payload) for payload in payloads]
        for report in reports:
            self.phase.report(report)
        return reports

    def go_on(self, report: Report) -> None:
        """Let the rank go on after a report, where no fault holds it: before a training step, or without a gate anywhere."""
        if isinstance(report, Stepping):
            address = step_address(self.rank, report.step)
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
        strike = self._armed.strike(operation)
        if strike is None or not isinstance(strike.decision, Hold):
            return False
        self._held_reports.append(strike)
        self._push(Held(strike.fault, strike.trigger, operation, self.phase.label))
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
                self._push(
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
        strike = self._armed.strike(operation)
        if strike is None:
            return None
        decision = strike.decision
        if isinstance(decision, Hold | Hide):
            self._strikes[operation.sequence] = strike
        elif isinstance(decision, Errno):
            name = os.strerror(decision.number)
            self._push(
                Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), name, strike.first)
            )
        elif isinstance(decision, Short):
            words = f"only {decision.length} of {operation.length} bytes written"
            self._push(
                Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), words, strike.first)
            )
        return decision

    def _hidden(self, operation: Operation, names: Sequence[str]) -> None:
        """A listing really lacked entries: only that is evidence."""
        strike, words = self._strikes[operation.sequence], f"listed without {', '.join(map(printable, names))}"
        self._push(Struck(strike.fault, _without_data(operation), self.phase.label_of(operation), words, strike.first))

    def _observe(self, operation: Operation) -> None:
        if operation.part == 0:  # a large write kept with its data comes in parts
            self.count(operation)
        if self._record != "nothing":
            phase = self.phase
            self.records.append(
                Labelled(operation, next(self._order), phase.name, phase.step_of(operation), phase.stage)
            )

    def count(self, operation: Operation) -> None:
        """One more operation."""
        self.operations += 1
        self.latest.append(operation.address)

    def tree(self) -> list[int]:
        """This process and its descendants."""
        return descendants(self.pid) if self.status is None else []

    def held_threads(self) -> set[int]:
        return set(self.gate.held_threads()) if self.gate is not None else set()

    def kill(self, by: Cause) -> None:
        """SIGKILL the whole tree."""
        if self.status is None:
            if self.by == "self":
                self.by = by
            kill_trees([self.pid])

    def kill_rank(self, rank: int, by: Cause) -> bool:
        """The same for one rank of several that may live in this tree. False when there is no such rank now."""
        self.kill(by)
        return self.status is None

    def kill_holder(self, fault: int) -> None:
        """SIGKILL the process, one of several of this rank, whose operation this fault holds."""
        for held in list(self.gate.holds) if self.gate is not None else ():
            if self._strikes[held.operation.sequence].fault == fault:
                kill_trees([held.pid])

    def signal_rank(self, rank: int, number: signal.Signals) -> bool:
        """SIGSTOP or SIGCONT to the whole tree, whose end, whenever it comes, is by a fault. False when it has ended."""
        if self.status is not None:
            return False
        self.by, self.suspended = "fault", number == signal.SIGSTOP
        self.signal_tree(self.pid, number)
        return True

    def signal_tree(self, root: int, number: signal.Signals) -> None:
        """Send a signal to a process and its descendants."""
        for pid in descendants(root):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # it ended meanwhile

    def close(self) -> None:
        """Free what belongs to an ended rank."""
        if self.gate is not None:
            self.gate.close()
            self.gate = None
        self.channel.close()

    def ended(self, untraced: tuple[str, ...]) -> list[Exited]:
        """What the runner is told once this process is reaped."""
        assert self.status is not None
        return [Exited(self.rank, self.status, self.by, self.stderr_tail(), self.operations, untraced)]

    def stderr_tail(self) -> str:
        """The end of what it printed, for an error."""
        return self.end_of_log(TAIL_BYTES)

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


def printable(path: str) -> str:
    """A path that any journal can hold: bytes that are no UTF-8 read `\\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def decode_path(path: str, nonces: Sequence[re.Pattern[str]]) -> str:
    """A path with the parts that differ from run to run read as `*`."""
    return printable(without_random(path, nonces))
