"""complete-only: what was loaded is one captured generation, with no torn or mixed part."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.identity import Deviation, Identity
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    judged = [(recovery, identity) for recovery in recoveries(view) for identity in recovery.identities]
    if not judged:
        return NotJudged("no rank loaded a checkpoint that could be identified")
    found = []
    for recovery, identity in judged:
        mixed = next((deviation for deviation in identity.deviations if deviation.mixed), None)
        if not identity.captures:
            found.append(_violation(view, recovery, identity, identity.mixture, identity.slug))
        elif mixed is not None:
            found.append(_violation(view, recovery, identity, _parts(identity, mixed), _slug(mixed)))
    return found


def _slug(deviation: Deviation) -> str:
    return "mixed-generations" if deviation.origin else "torn-bytes"


def _parts(identity: Identity, deviation: Deviation) -> str:
    whose = f"those of {deviation.origin}" if deviation.origin else "equal to nothing that was ever saved"
    subject = (
        f"the {deviation.component} of rank {deviation.rank}" if deviation.rank is not None else deviation.component
    )
    return f"the parameters are those of {identity.captures[0]}, but parts of {subject} are {whose}: {deviation.detail}"


def _violation(view: TrialView, recovery: Recovery, identity: Identity, seen: str, slug: str) -> Violation:
    rank = identity.subject.ranks[0]
    answer = recovery.answer(rank)
    step = answer.event.chosen
    return Violation(
        invariant=complete_only.name,
        sentence=(
            f"In attempt {recovery.attempt.number} {identity.subject.name} loaded a checkpoint said to be step {step} "
            f"that is no state ever captured: {seen}. It is stamped {_stamps(identity)}."
            f"{aftermath(view, answer.index, recovery.attempt.number)}"
        ),
        attempt=recovery.attempt.number,
        rank=rank if len(identity.subject.ranks) == 1 else None,
        step=step,
        path=struck_path(view, answer.index, recovery.attempt.number),
        expected="one generation, each part equal to what was captured at its save",
        seen=seen,
        error_type=slug,
        evidence=tuple(recovery.answer(number).index for number in identity.subject.ranks),
    )


def _stamps(identity: Identity) -> str:
    """Where each rank's own part says that it was captured."""
    stamps = {rank: digest.stamp for rank, digest in sorted(identity.subject.digests.items())}
    return ", ".join(
        f"on rank {rank} as attempt {attempt}, step {step}, rank {saver} of {world}"
        for rank, (attempt, step, saver, world) in stamps.items()
    )


complete_only = Invariant(
    name="complete-only",
    holds="what was loaded equals, digest by digest, what was captured by one save: no torn and no mixed parts",
    judge=_judge,
)
