"""full-state: with the parameters everything else of the same capture came back."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.journal import FaultInjected
from chaosckpt.model.phrasing import plural
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.blame import FULL_STATE, resized
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.command_storage import to_resume_is_enough
from chaosckpt.oracle.facts.identity import Deviation, Identity
from chaosckpt.oracle.facts.lineage import source
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.streams import StreamFault, stream_faults
from chaosckpt.oracle.facts.view import At, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """By the live objects of every rank, part by part."""
    judged = [
        (recovery, identity) for recovery in recoveries(view) for identity in recovery.identities if identity.captures
    ]
    if not judged:
        return NotJudged("the parameters of no loaded state could be found in a save")
    found = []
    for recovery, identity in judged:
        lost = [deviation for deviation in identity.deviations if not deviation.mixed]
        # One sentence for each lost component of a rank would bury the first; a mix is judged by complete-only.
        if lost:
            found.append(_lost_parts(view, recovery, identity, lost))
    for recovery in recoveries(view):
        found += [_wrong_streams(view, recovery, fault) for fault in stream_faults(view, recovery)]
    return found


def _lost_parts(view: TargetView, recovery: Recovery, identity: Identity, lost: list[Deviation]) -> Violation:
    first = lost[0]
    rank = first.rank if first.rank is not None else identity.holder.ranks[0]
    capture = identity.captures[0]
    evidence = (capture.save.first_index, recovery.answer(rank).index)
    seen = "; ".join(f"{deviation.component} of rank {deviation.rank}: {deviation.detail}" for deviation in lost)
    return view.violation(
        FULL_STATE,
        f"{view.after_restart(recovery.attempt.number)}, rank {rank} had the parameters of {capture}, but not its {first.component}: "
        f"{seen}.",
        attempt=recovery.attempt.number,
        rank=rank,
        step=capture.save.step,
        error_type="lost-" + first.component.replace(" ", "-"),
        evidence=evidence,
        expected=f"the {first.component} saved at step {capture.save.step}",
        seen=seen,
        shown=evidence[1],
        fault=_resized(view, recovery, evidence),
    )


def _wrong_streams(view: TargetView, recovery: Recovery, fault: StreamFault) -> Violation:
    save = source(recovery)
    assert save is not None
    evidence = (save.first_index, recovery.answer(fault.rank).index)
    before, now = save.topology.world_size, recovery.attempt.world_size
    role = "which exists in both jobs" if fault.rank < before else "which is new"
    return view.violation(
        FULL_STATE,
        f"{view.after_restart(recovery.attempt.number)}, {plural(now, 'rank')} resumed from {save} by {plural(before, 'rank')}, "
        f"and rank {fault.rank}, {role}, had wrong random streams: {fault.seen}; expected: {fault.expected}.",
        attempt=recovery.attempt.number,
        rank=fault.rank,
        step=save.step,
        error_type=f"{fault.slug}-rng",
        evidence=evidence,
        expected=fault.expected,
        seen=fault.seen,
        shown=evidence[1],
        fault=_resized(view, recovery, evidence),
    )


def _resized(view: TargetView, recovery: Recovery, evidence: tuple[int, int]) -> FaultInjected | None:
    return resized(view.journal.events, evidence, recovery.attempt.number)


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """By the digests that a script tells through the probe: what it holds after it resumed is what it had saved."""
    found: list[Violation] = []
    judged = 0
    for attempt in view.attempts:
        for at in attempt.all(j.Probed):
            if at.event.what != "resumed" or not at.event.digest:
                continue
            saved = _saved_before(view, attempt, at.event)
            if not saved:
                continue
            judged += 1
            if at.event.digest not in {other.event.digest for other in saved}:
                found.append(_other_state(view, attempt, at, saved[-1]))
    if not judged:
        return NotJudged("the script reports no state with chaosckpt.probe: pass the state to saved() and resumed()")
    return found


def _saved_before(view: CommandView, attempt: CommandAttempt, resumed: j.Probed) -> list[At[j.Probed]]:
    """What this rank told of its saves of that step before, in the same number of ranks."""
    return [
        at
        for other in view.attempts
        if other.number <= attempt.number and other.world_size == attempt.world_size
        for at in other.all(j.Probed)
        if (at.event.what, at.event.rank, at.event.step) == ("saved", resumed.rank, resumed.step) and at.event.digest
    ]


def _other_state(view: CommandView, attempt: CommandAttempt, at: At[j.Probed], saved: At[j.Probed]) -> Violation:
    return view.violation(
        FULL_STATE,
        f"{view.after_restart(attempt.number)}, rank {at.event.rank} resumed from step {at.event.step} with another state than it had "
        f"saved: digest {at.event.digest[:8]} instead of {saved.event.digest[:8]}.",
        attempt=attempt.number,
        rank=at.event.rank,
        step=at.event.step,
        error_type=to_resume_is_enough(view, attempt) or "other-state",
        evidence=(saved.index, at.index),
        expected=saved.event.digest,
        seen=at.event.digest,
    )


full_state = Invariant(
    name=FULL_STATE,
    holds=(
        "parameters, optimizer, scheduler, step, random streams and data position of every rank come from one save; with another "
        "number of ranks every rank has the data position, and random streams that no other rank has"
    ),
    of_target=_of_target,
    of_command=_of_command,
)
