"""Audits: after an attempt, new ranks load every retained checkpoint that was acknowledged, while storage is as it was left."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener, Record
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import AuditProgram
from chaosckpt.engine.wire.reports import Retained
from chaosckpt.model import journal as j
from chaosckpt.model.topology import Topology


class _Lists(Listener):
    """What each rank's target lists as retained."""

    def __init__(self) -> None:
        self.retained: dict[int, tuple[int, ...] | None] = {}

    def heard(self, message: Heard) -> None:
        if isinstance(message, Retained):
            self.retained[message.rank] = message.steps


def audit(
    arena: Arena,
    order: AttemptOrder,
    topology: Topology,
    asked: Sequence[int],
    record: Record,
    deadlines: Deadlines,
) -> None:
    """Load what is retained of the steps `asked`, in the topology of the attempt whose `order` this was.

    Nothing is recorded where the target offers no list of what it retains.
    """
    auditing = msgspec.structs.replace(order, program=AuditProgram(steps=tuple(asked)), faults=())

    def record_audited(event: j.AnyEvent) -> None:
        if isinstance(event, j.Audited):
            record(event)

    found = _Lists()
    outcome = AttemptRun(arena, auditing, topology, (), record_audited, deadlines, listener=found).run()
    if None in found.retained.values():
        return
    lists = [set(steps or ()) for steps in found.retained.values()]
    retained = sorted(set.intersection(*lists)) if lists else []
    record(
        j.AuditEnded(
            attempt=order.attempt,
            outcome=outcome,
            asked=tuple(asked),
            retained=tuple(retained),
        )
    )


def wanted(events: Sequence[j.AnyEvent], attempt: int, *, closing: bool, awaited: bool) -> tuple[int, ...]:
    """The acknowledged steps to be audited after this attempt; empty where an audit could show nothing new.

    It could where an error was injected and a save acknowledged in the attempt, and at the trial's end where an error was injected
    at any time, or where the script left its last saves to themselves.
    """
    worlds = {event.attempt: sum(event.ranks) for event in events if isinstance(event, j.AttemptStarted)}
    ranks: dict[tuple[int, int], set[int]] = {}
    for event in events:
        if not isinstance(event, (j.Acknowledged, j.SaveStarted)):
            continue
        # A script that doesn't wait is told of nothing; what it began and left behind in order should be there all the same.
        left = closing and not awaited and event.attempt == attempt
        if isinstance(event, j.Acknowledged) or left:
            ranks.setdefault((event.attempt, event.step), set()).add(event.rank)
    complete = {key for key, found in ranks.items() if len(found) == worlds[key[0]]}
    errors = {event.attempt for event in events if isinstance(event, j.ErrorInjected)}
    now = attempt in errors and any(at == attempt for at, _ in complete)
    at_last = closing and (bool(errors) or not awaited)
    return tuple(sorted({step for _, step in complete})) if now or at_last else ()
