"""Audits: after an attempt, new ranks load every retained checkpoint that was acknowledged, from storage as it was left or kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener, Record
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.kept import Keeper, Kept
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import AuditProgram
from chaosckpt.engine.wire.reports import Retained
from chaosckpt.model import journal as j
from chaosckpt.model.topology import Topology


class _Heard(Listener):
    """What each rank's target lists as retained, and for which steps each has answered."""

    def __init__(self, record: Record, as_of: j.Moment | None) -> None:
        self.retained: dict[int, tuple[int, ...] | None] = {}
        self.answered: dict[int, set[int]] = {}
        self._record = record
        self._as_of = as_of

    def heard(self, message: Heard) -> None:
        if isinstance(message, Retained):
            self.retained[message.rank] = message.steps

    def record(self, event: j.AnyEvent) -> None:
        if isinstance(event, j.Audited):
            self.answered.setdefault(event.step, set()).add(event.rank)
            self._record(msgspec.structs.replace(event, as_of=self._as_of))


def audit(
    arena: Arena,
    order: AttemptOrder,
    topology: Topology,
    asked: Sequence[int],
    record: Record,
    deadlines: Deadlines,
    kept: Kept | None = None,
) -> frozenset[int]:
    """Load what is retained of the steps `asked`, in the topology of the attempt whose `order` this was; returns the steps
    that every rank has answered for.

    With `kept`, storage is as it was kept, and a target that offers no list of what it retains recovers from it. Without, nothing is
    recorded of such a target.
    """
    program = AuditProgram(steps=tuple(asked), recovers=kept is not None)
    auditing = msgspec.structs.replace(order, program=program, faults=())
    as_of = None if kept is None else kept.moment
    found = _Heard(record, as_of)
    outcome = AttemptRun(arena, auditing, topology, (), found.record, deadlines, listener=found).run()
    unlisted = None in found.retained.values()
    if unlisted and kept is None:
        return frozenset()
    lists = [set(steps or ()) for steps in found.retained.values()]
    record(
        j.AuditEnded(
            attempt=order.attempt,
            outcome=outcome,
            asked=tuple(asked),
            retained=tuple(sorted(set.intersection(*lists))) if lists else (),
            as_of=as_of,
        )
    )
    return frozenset(step for step, ranks in found.answered.items() if len(ranks) == topology.world_size)


def audit_kept(
    arena: Arena,
    order: AttemptOrder,
    topology: Topology,
    keeper: Keeper,
    answered: Collection[int],
    record: Record,
    deadlines: Deadlines,
) -> None:
    """Audit, on storage as it was kept, each acknowledged step that the audit after the attempt had no answer for, or may have
    had from node-local storage only."""
    for kept in keeper.kept:
        if kept.moment.alone or kept.moment.step not in answered:
            with keeper.standing(kept):
                audit(arena, order, topology, (kept.moment.step,), record, deadlines, kept)


def wanted(
    events: Sequence[j.AnyEvent], attempt: int, *, closing: bool, awaited: bool, plain: bool = False
) -> tuple[int, ...]:
    """The acknowledged steps to be audited after this attempt; empty where an audit could show nothing new.

    It could where an error was injected and a save acknowledged in the attempt, or one acknowledged after another fault that may
    spoil it, and at the trial's end where an error was injected at any time, or where the script left its last saves to themselves.
    In a `plain` trial, which has no faults, the first attempt shows whether each retained step loads without one.
    """
    worlds = {event.attempt: sum(event.ranks) for event in events if isinstance(event, j.AttemptStarted)}
    ranks: dict[tuple[int, int], set[int]] = {}
    spoilt = False
    after: set[int] = set()
    for event in events:
        if event.attempt == attempt:
            spoilt = spoilt or j.may_spoil(event)
            if spoilt and isinstance(event, j.Acknowledged):
                after.add(event.step)
        if not isinstance(event, (j.Acknowledged, j.SaveStarted)):
            continue
        # A script that doesn't wait is told of nothing; what it began and left behind in order should be there all the same.
        left = closing and not awaited and event.attempt == attempt
        if isinstance(event, j.Acknowledged) or left:
            ranks.setdefault((event.attempt, event.step), set()).add(event.rank)
    complete = {key for key, found in ranks.items() if len(found) == worlds[key[0]]}
    errors = {event.attempt for event in events if isinstance(event, j.ErrorInjected)}
    now = any(at == attempt and (attempt in errors or step in after) for at, step in complete)
    at_last = closing and (bool(errors) or not awaited)
    return tuple(sorted({step for _, step in complete})) if now or at_last or (plain and not closing) else ()
