"""full-state: with the parameters everything else of the same capture came back."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.guilt import resized
from chaosckpt.oracle.identity import Deviation, Identity
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.lineage import source
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.streams import StreamFault, stream_faults
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, blamed, struck_path


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
    for recovery in recoveries(view):
        found += [_streams(view, recovery, fault) for fault in stream_faults(view, recovery)]
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
            f"{first.component}: {seen}.{_blamed(view, recovery, (capture.save.first_index, answer.index))}"
        ),
        attempt=recovery.attempt.number,
        rank=rank,
        step=capture.save.step,
        path=struck_path(view, answer.index, recovery.attempt.number),
        expected=f"the {first.component} captured at step {capture.save.step}",
        seen=seen,
        error_type="lost-" + first.component.replace(" ", "-"),
        evidence=(capture.save.first_index, answer.index),
    )


def _streams(view: TrialView, recovery: Recovery, fault: StreamFault) -> Violation:
    answer = recovery.answer(fault.rank)
    save = source(recovery)
    assert save is not None
    before, now = save.topology.world_size, recovery.attempt.world_size
    role = "which exists in both worlds" if fault.rank < before else "which is new"
    return Violation(
        invariant=full_state.name,
        sentence=(
            f"In attempt {recovery.attempt.number}, with {now} ranks resuming {save}, which {before} captured, rank "
            f"{fault.rank}, {role}, has wrong random streams: {fault.seen}; expected: {fault.expected}."
            f"{_blamed(view, recovery, (save.first_index, answer.index))}"
        ),
        attempt=recovery.attempt.number,
        rank=fault.rank,
        step=save.step,
        expected=fault.expected,
        seen=fault.seen,
        error_type=f"{fault.slug}-rng",
        evidence=(save.first_index, answer.index),
    )


def _blamed(view: TrialView, recovery: Recovery, evidence: tuple[int, int]) -> str:
    number = recovery.attempt.number
    return blamed(resized(view.journal.events, evidence, number)) or aftermath(view, evidence[1], number)


full_state = Invariant(
    name="full-state",
    holds=(
        "parameters, optimizer, scheduler, step, random streams and data position of every rank are of one capture; "
        "with another number of ranks every rank has the data position, and random streams that are nobody else's"
    ),
    judge=_judge,
)
