"""data-once: over the lineage the job trained on every sample in its turn, skipping and repeating none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.lineage import Link, lineage
from chaosckpt.oracle.traces import Trained, expected, references, trained
from chaosckpt.oracle.view import AttemptView, TrialView
from chaosckpt.oracle.words import aftermath, ranks, struck_path

SHOWN = 4
"""Samples that a sentence names."""


@dataclass(frozen=True)
class _Audit:
    """The steps of a lineage that can be judged: every rank of the attempt has told them."""

    steps: dict[int, list[Trained]]
    """By step: what all ranks trained, in every link that trained it."""
    owners: dict[int, int]
    """By step: the attempt that had to train it."""


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    if not references(view):
        return NotJudged("the journal has no reference to compare the samples with")
    newest = _newest(view)
    if newest is None:
        return NotJudged("no attempt trained")
    audit = _audit(lineage(view, newest.number).links)
    comparable = [step for step, owner in audit.owners.items() if expected(view, owner, step) is not None]
    if not comparable:
        return NotJudged("no step of the lineage was told by all its ranks and by a reference")
    first = next(_out_of_turn(view, audit), None) or next(_twice(view, audit), None)
    return [] if first is None else [first]


def _newest(view: TrialView) -> AttemptView | None:
    """The last attempt that finished, else the newest that trained."""
    done = [attempt for attempt in view.attempts if attempt.finished]
    trains = [attempt for attempt in view.attempts if trained(attempt, None)]
    return (done or trains)[-1] if done or trains else None


def _audit(links: Sequence[Link]) -> _Audit:
    audit = _Audit({}, {})
    for link in links:
        told = trained(link.attempt, link.upto)
        everyone = range(link.attempt.world_size)
        last = {rank: max((t.trace.step for t in told if t.rank == rank), default=0) for rank in everyone}
        if not all(last.values()):
            continue  # some rank tells nothing, so that nothing is known of what it trained
        # Every rank that began the save from which training went on has told all before it.
        begun = set() if link.upto is None else set(link.upto.started)
        others = [step for rank, step in last.items() if rank not in begun]
        end = min(others, default=0 if link.upto is None else link.upto.step)
        for step in range(link.begins_after + 1, end + 1):
            audit.owners[step] = link.attempt.number
        for item in told:
            if item.trace.step <= end:
                audit.steps.setdefault(item.trace.step, []).append(item)
    return audit


def _out_of_turn(view: TrialView, audit: _Audit) -> Iterator[Violation]:
    """Steps whose samples aren't those of the uninterrupted run."""
    for step, owner in sorted(audit.owners.items()):
        reference = expected(view, owner, step)
        if reference is None:
            continue
        told = audit.steps.get(step, [])
        right = Counter(reference.samples)
        seen = Counter(sample for item in told for sample in item.trace.samples)
        if seen == right:
            continue
        skipped, wrong = sorted((right - seen).elements()), sorted((seen - right).elements())
        before = {
            sample
            for earlier in audit.steps
            if earlier < step
            for item in audit.steps[earlier]
            for sample in item.trace.samples
        }
        repeated = [sample for sample in wrong if sample in before or sample in right]
        strange = [sample for sample in wrong if sample not in before and sample not in right]
        phrases = [f"skipped {_some(skipped)}"] if skipped else []
        phrases += [f"repeated {_some(repeated)}"] if repeated else []
        phrases += [f"took {_some(strange)} out of turn"] if strange else []
        slug = "repeated-samples" if repeated else "skipped-samples"
        yield _violation(view, step, owner, told, ", ".join(phrases), slug, _some(sorted(right.elements())))


def _twice(view: TrialView, audit: _Audit) -> Iterator[Violation]:
    """Samples that were trained on twice within one epoch. Steps across the end of an epoch belong to neither."""
    batch, dataset = view.scenario.workload.batch, view.scenario.workload.dataset
    first: dict[tuple[int, int], int] = {}
    for step, told in sorted(audit.steps.items()):
        epoch = (step - 1) * batch // dataset
        if epoch != (step * batch - 1) // dataset:
            continue
        for item in told:
            for sample in item.trace.samples:
                earlier = first.setdefault((epoch, sample), step)
                if earlier < step:
                    seen = f"repeated sample {sample}, which step {earlier} of the same epoch had had"
                    right = f"each sample once in epoch {epoch}"
                    yield _violation(view, step, item.attempt, told, seen, "repeated-samples", right)


def _violation(
    view: TrialView, step: int, owner: int, told: Sequence[Trained], seen: str, slug: str, right: str
) -> Violation:
    who = ranks(item.rank for item in told) if told else "no rank"
    attempts = sorted({item.attempt for item in told})
    where = f"attempts {' and '.join(map(str, attempts))}" if len(attempts) > 1 else f"attempt {owner}"
    attempt = view.attempt(owner)
    shown = max((item.index for item in told), default=attempt.start.index if attempt is not None else 0)
    return Violation(
        invariant=data_once.name,
        sentence=(
            f"Over the lineage, step {step}, trained by {who} in {where}, {seen}; expected: {right}."
            f"{aftermath(view, shown, owner)}"
        ),
        attempt=owner,
        step=step,
        path=struck_path(view, shown, owner),
        expected=f"the samples of step {step} of the uninterrupted run: {right}",
        seen=seen,
        error_type=slug,
        evidence=tuple(sorted({item.index for item in told} or {shown})),
    )


def _some(samples: Sequence[int]) -> str:
    more = f" and {len(samples) - SHOWN} more" if len(samples) > SHOWN else ""
    return f"sample{'s' if len(samples) != 1 else ''} {', '.join(map(str, samples[:SHOWN]))}{more}"


data_once = Invariant(
    name="data-once",
    holds=(
        "over the lineage every step trained on the samples of the uninterrupted run, with any number of ranks: none "
        "skipped, none repeated"
    ),
    judge=_judge,
)
