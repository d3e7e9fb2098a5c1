"""Audits: what new ranks found when they loaded acknowledged checkpoints by their steps, after an attempt."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaosckpt.model.journal import NOTHING, AnyEvent, Audited, AuditEnded, Moment, may_spoil
from chaosckpt.oracle.facts.identity import Identity, holders, identify
from chaosckpt.oracle.facts.recovery import captures
from chaosckpt.oracle.facts.requirement import abandoned
from chaosckpt.oracle.facts.saves import Save, save_of, saves
from chaosckpt.oracle.facts.survival import Reader, breach, standing
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView
from chaosckpt.oracle.phrasing import audit_of, chosen_by_audit


@dataclass(frozen=True)
class Checked:
    """One acknowledged save that an audit after `attempt` had to load. `problem` is empty where every rank loaded it
    exactly; else it says what was wrong, on which rank, with the index of the event that shows it.

    `as_of`: storage was as it had been at that moment, not as the attempt left it.
    """

    attempt: int
    save: Save
    problem: str = ""
    slug: str = ""
    rank: int | None = None
    index: int = 0
    as_of: Moment | None = None


@functools.lru_cache(maxsize=4)
def checked(view: TargetView) -> tuple[Checked, ...]:
    """What the audits of a trial prove about acknowledged saves that nothing had taken away, attempt by attempt."""
    return tuple(
        found for attempt in view.attempts for ended in _ended(attempt) for found in _checked(view, attempt, ended)
    )


def unfinished(view: TargetView) -> list[tuple[str, int]]:
    """Audits that prove nothing, in words, with their events' indices."""
    return [
        (f"the audit {audit_of(at.event.attempt, at.event.as_of)} {at.event.outcome}, so it proves nothing", at.index)
        for at in view.all(AuditEnded)
        if at.event.outcome != "finished"
    ]


@functools.lru_cache(maxsize=4)
def unaudited(view: TargetView) -> tuple[tuple[Save, At[AnyEvent]], ...]:
    """The saves that were acknowledged after a fault of their attempt that may have spoilt them, and of which no audit tells
    anything, each with the first such fault; without those that a fault took away, or may have."""
    audited = {found.save.key for found in checked(view)}
    left = []
    for save in saves(view):
        attempt = view.attempt(save.attempt)
        if attempt is None or save.status != "acknowledged" or save.key in audited:
            continue
        faults = [at for at in attempt.events if may_spoil(at.event) and at.index < max(save.evidence)]
        reader = Reader(attempt.topology, attempt.start.index, max(at.index for at in attempt.events))
        if faults and standing(save, reader.losses(view), reader)[1] and breach(view, save, reader) is None:
            left.append((save, faults[0]))
    return tuple(left)


def loads(view: TargetView, attempt: TargetAttempt, step: int) -> bool | None:
    """Whether an audit after this attempt could load a step, acknowledged or not, as exactly what some save of it had
    captured; None where no audit tells."""
    ended = next((ended for ended in _ended(attempt) if ended.event.as_of is None), None)
    if ended is None or step not in ended.event.asked:
        return None
    answers = _answers(attempt, ended, step)
    if not answers:
        return None if step in ended.event.retained else False
    if len(answers) < attempt.world_size:
        return None
    return _problem(view, attempt, step, answers, 0) is None


def _ended(attempt: TargetAttempt) -> list[At[AuditEnded]]:
    return [at for at in attempt.all(AuditEnded) if at.event.outcome == "finished"]


def _answers(attempt: TargetAttempt, ended: At[AuditEnded], step: int) -> list[At[Audited]]:
    """What the ranks of an audit said of a step, in the order of ranks."""
    own = [at for at in attempt.all(Audited) if (at.event.step, at.event.as_of) == (step, ended.event.as_of)]
    return sorted(own, key=lambda at: at.event.rank)


def _checked(view: TargetView, attempt: TargetAttempt, ended: At[AuditEnded]) -> Iterator[Checked]:
    kept = _loadable(view, attempt, ended)
    as_of = ended.event.as_of
    for step, save in sorted(kept.items()):
        answers = _answers(attempt, ended, step)
        if len({at.event.rank for at in answers}) == attempt.world_size:
            problem = _problem(view, attempt, step, answers, save.attempt)
            if problem is None:
                yield Checked(attempt.number, save, index=max(at.index for at in answers), as_of=as_of)
            elif step == max(kept) or _problem(view, attempt, step, answers, 0) is not None:
                # Else it is another save of this step that is left, exactly as it was; retention may have removed this one.
                words, slug, at = problem
                yield Checked(attempt.number, save, words, slug, at.event.rank, at.index, as_of)
        elif (
            step == max(kept)
            and step in ended.event.asked
            and not answers
            and max(ended.event.retained, default=-1) < step
        ):
            words = "the target no longer lists this step among its complete checkpoints"
            yield Checked(attempt.number, save, words, "not-retained", None, ended.index, as_of)


def _loadable(view: TargetView, attempt: TargetAttempt, ended: At[AuditEnded]) -> dict[int, Save]:
    """The acknowledged saves that this audit should be able to load, by their steps, unless retention has removed them."""
    as_of = ended.event.as_of
    if as_of is not None:
        # Whatever comes later can't be to blame: the storage is of the moment of the last acknowledgement.
        save = save_of(view, attempt.number, as_of.step)
        if save is None or save.status != "acknowledged":
            return {}
        reader = Reader(attempt.topology, attempt.start.index, max(save.evidence))
        return {} if breach(view, save, reader) is not None else {save.step: save}
    reader = Reader(attempt.topology, attempt.start.index, ended.index)
    losses = reader.losses(view)
    return {
        save.step: save
        for save in saves(view)
        if save.attempt <= attempt.number
        and standing(save, losses, reader)[1]
        and breach(view, save, reader) is None
        and abandoned(view, save, attempt.number + 1) is None
    }


def _problem(
    view: TargetView, attempt: TargetAttempt, step: int, answers: Sequence[At[Audited]], since: int
) -> tuple[str, str, At[Audited]] | None:
    """What was wrong with a loaded step, in words and as a short word, with the event that shows it.

    Right is what a save of that step captured, by the attempt `since` or a later one.
    """
    for at in answers:
        if at.event.chosen is not None and at.event.chosen < step:
            words = f"recovery on rank {at.event.rank} chose {chosen_by_audit(at.event.chosen)}"
            return words, "nothing-chosen" if at.event.chosen == NOTHING else "older-checkpoint", at
        if at.event.digest is None:
            words = f"rank {at.event.rank} could not load it: {at.event.error_type}: {_line(at.event.message)}"
            return words, at.event.error_type or "unloadable", at
    known = [capture for capture in captures(view) if capture.save.attempt <= attempt.number]
    digests = [at.event.digest for at in answers if at.event.digest is not None]
    for holder in holders(digests):
        steps = {at.event.chosen or step for at in answers if at.event.rank in holder.ranks}
        identity = identify(holder, known, steps)
        right = any({save.step} == steps and save.attempt >= since for save in identity.saves)
        if not (identity.exact and right):
            at = next(at for at in answers if at.event.rank == holder.ranks[0])
            return f"the state that {holder.name} loaded is {_shown(identity)}", "wrong-state", at
    return None


def _shown(identity: Identity) -> str:
    if not identity.captures:
        return f"not the state of any save: {identity.mixture}"
    if not identity.deviations:
        return f"that of {identity.captures[0]}"
    first = identity.deviations[0]
    return f"not that of {identity.captures[0]}: {first.component}: {first.detail}"


def _line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
