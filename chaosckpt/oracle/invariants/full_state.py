"""full-state: with the parameters everything else of the same capture came back."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.identity import Deviation, Identity
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    judged = [
        (recovery, identity) for recovery in recoveries(view) for identity in recovery.identities if identity.captures
    ]
    if not judged:
        return NotJudged("no loaded state could be identified by its parameters")
    found = []
    for recovery, identity in judged:
        lost = [deviation for deviation in identity.deviations if not deviation.mixed]
        # One sentence for each lost component of a rank would bury the first; a mix is judged by complete-only.
        if lost:
            found.append(_violation(view, recovery, identity, lost))
    return found


def _violation(view: TrialView, recovery: Recovery, identity: Identity, lost: list[Deviation]) -> Violation:
    first = lost[0]
    rank = first.rank if first.rank is not None else identity.subject.ranks[0]
    answer = recovery.answer(rank)
    capture = identity.captures[0]
    seen = "; ".join(f"{deviation.component} of rank {deviation.rank}: {deviation.detail}" for deviation in lost)
    return Violation(
        invariant=full_state.name,
        sentence=(
            f"In attempt {recovery.attempt.number} rank {rank} holds the parameters of {capture}, but not its "
            f"{first.component}: {seen}.{aftermath(view, answer.index, recovery.attempt.number)}"
        ),
        attempt=recovery.attempt.number,
        rank=rank,
        step=capture.save.step,
        path=struck_path(view, answer.index, recovery.attempt.number),
        expected=f"the {first.component} that rank {rank} captured at step {capture.save.step}",
        seen=seen,
        error_type="lost-" + first.component.replace(" ", "-"),
        evidence=(capture.save.first_index, answer.index),
    )


full_state = Invariant(
    name="full-state",
    holds="parameters, optimizer, scheduler, step, random streams and data position of every rank are of one capture",
    judge=_judge,
)
