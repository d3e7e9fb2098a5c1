"""trajectory: what is trained after a recovery equals the reference bit for bit: losses, state and random streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaosckpt.model.digest import StateDigest, WorldDigest, fingerprint, part_fingerprints
from chaosckpt.model.journal import Finished, Reference, ReferenceStep
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.identity import together
from chaosckpt.oracle.facts.lineage import recovery_of, references, trained
from chaosckpt.oracle.facts.saves import saves
from chaosckpt.oracle.facts.streams import exact
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged

NAME = "trajectory"


@dataclass(frozen=True)
class _Told:
    """What the ranks told of the time after one step: the live digests, and the losses, each with its event's index."""

    digests: dict[int, tuple[StateDigest, int]]
    losses: dict[int, tuple[str, int]]


@dataclass(frozen=True)
class _Difference:
    """The first thing in which a step isn't the reference's: a part, on one rank or on all together."""

    part: str
    rank: int | None
    expected: str
    seen: str
    index: int


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    reasons, found, judged = [], [], 0
    for number, reference in sorted(references(view).items()):
        attempt = view.attempt(number)
        obstacle = "not launched" if attempt is None else _obstacle(view, attempt, reference.event)
        if attempt is None or obstacle:
            reasons.append(f"attempt {number}: {obstacle}")
            continue
        told = _told(view, attempt)
        for step in reference.event.steps:
            if step.step in told:
                judged += 1
                difference = next(_differences(step, told[step.step], attempt.world_size), None)
                if difference is not None:
                    found.append(_deviates(view, attempt, reference, step.step, difference))
                    break  # what follows a difference differs, too
    if not judged:
        return NotJudged("; ".join(reasons) or "the journal has no reference run to compare the training with")
    return found


def _obstacle(view: TargetView, attempt: TargetAttempt, reference: Reference) -> str:
    """Why an attempt can't be compared with its reference; empty where it can."""
    recovery = recovery_of(view, attempt.number)
    if recovery is None or len(attempt.recovered) < attempt.world_size:
        return "not all ranks finished recovery"
    if not exact(view, recovery):
        return "it did not start with exactly the saved state, which other invariants judge"
    begun = tuple(fingerprint(at.event.digest.rng) for at in attempt.recovered)
    if begun != reference.start_rng:
        return "the ranks started with other random streams than the reference run, as they may with another number of ranks"
    return ""


def _told(view: TargetView, attempt: TargetAttempt) -> dict[int, _Told]:
    found: dict[int, _Told] = {}
    for item in trained(attempt, None):
        told = found.setdefault(item.trace.step, _Told({}, {}))
        told.losses[item.rank] = (item.trace.loss, item.index)
    for save in saves(view):
        if save.attempt == attempt.number:
            told = found.setdefault(save.step, _Told({}, {}))
            told.digests.update({rank: (digest, save.started[rank]) for rank, digest in save.digests.items()})
    for at in attempt.all(Finished):
        told = found.setdefault(at.event.step, _Told({}, {}))
        told.digests.setdefault(at.event.rank, (at.event.digest, at.index))
    return found


def _differences(step: ReferenceStep, told: _Told, world_size: int) -> Iterator[_Difference]:
    for rank, (loss, index) in sorted(told.losses.items()):
        right = step.losses[rank] if rank < len(step.losses) else ""
        if loss != right:
            yield _Difference("loss", rank, right or "none", loss, index)
    if not step.parts or len(told.digests) < world_size:
        return
    index = max(index for _, index in told.digests.values())
    world = together(digest for digest, _ in told.digests.values())
    if world is None:
        return
    for part, seen in part_fingerprints(world).items():
        right = step.parts.get(part, "")
        if seen != right:
            yield _Difference(part, None, right or "none", seen + _disagreement(world, part), index)
    for rank, (digest, index) in sorted(told.digests.items()):
        right, seen = step.rng[rank] if rank < len(step.rng) else "", fingerprint(digest.rng)
        if seen != right:
            yield _Difference("random streams", rank, right or "none", seen, index)


def _disagreement(world: WorldDigest, part: str) -> str:
    """What the ranks hold differently in this part, if they do."""
    begins = {"parameters": "parameter", "optimizer": "optimizer", "scheduler": "scheduler", "step": "step"}.get(part)
    problem = next((problem for problem in world.problems if begins and problem.startswith(begins)), "")
    return f" ({problem})" if problem else ""


def _deviates(
    view: TargetView, attempt: TargetAttempt, reference: At[Reference], step: int, difference: _Difference
) -> Violation:
    part, number = difference.part, attempt.number
    whose = "" if difference.rank is None else f" of rank {difference.rank}"
    since = reference.event.resumed_from
    begun = f"resumed from step {since} with exactly the saved state," if since else "started at step 0,"
    return view.violation(
        NAME,
        f"Attempt {number} {begun} but after step {step} the {part}{whose} "
        f"{'differ' if part.endswith('s') and part != 'loss' else 'differs'} from the reference run without a checkpointer: "
        f"expected {difference.expected}, seen {difference.seen}.",
        attempt=number,
        rank=difference.rank,
        step=step,
        error_type="other-" + part.replace(" ", "-"),
        evidence=(difference.index,),
        expected=f"{part}{whose} {difference.expected} after step {step}",
        seen=difference.seen,
    )


trajectory = Invariant(
    name=NAME,
    holds="the steps after a recovery equal, bit for bit, those of an uninterrupted job",
    of_target=_of_target,
)
