"""exactly-once-data: the job trains on every sample in its turn, skipping and repeating none, however often it is interrupted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.command import CommandView
from chaosckpt.oracle.facts.command_storage import to_resume_is_enough
from chaosckpt.oracle.facts.lineage import Link, Trained, expected, lineage, references, trained
from chaosckpt.oracle.facts.view import TargetAttempt, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.phrasing import ranks

NAME = "exactly-once-data"
SHOWN = 4
"""Samples that a sentence names."""


@dataclass(frozen=True)
class _Audit:
    """The steps of a lineage that can be judged: every rank of the attempt has told them."""

    steps: dict[int, list[Trained]]
    """By step: what all ranks trained, in every link that trained it."""
    owners: dict[int, int]
    """By step: the attempt that had to train it."""


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """Over the lineage, by what each rank told of its steps, beside a reference."""
    if not references(view):
        return NotJudged("the journal has no reference run to compare the samples with")
    newest = _newest(view)
    if newest is None:
        return NotJudged("no attempt trained")
    audit = _audit(lineage(view, newest.number).links)
    comparable = [step for step, owner in audit.owners.items() if expected(view, owner, step) is not None]
    if not comparable:
        return NotJudged("no step has the samples of all ranks and of a reference run")
    first = next(_out_of_turn(view, audit), None) or next(_twice(view, audit), None)
    return [] if first is None else [first]


def _newest(view: TargetView) -> TargetAttempt | None:
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


def _out_of_turn(view: TargetView, audit: _Audit) -> Iterator[Violation]:
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
        phrases += [f"used {_some(strange)} out of order"] if strange else []
        slug = "repeated-samples" if repeated else "skipped-samples"
        yield _other_samples(view, step, owner, told, ", ".join(phrases), slug, _some(sorted(right.elements())))


def _twice(view: TargetView, audit: _Audit) -> Iterator[Violation]:
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
                    seen = f"repeated sample {sample} of step {earlier} of the same epoch"
                    right = f"each sample once in epoch {epoch}"
                    yield _other_samples(view, step, item.attempt, told, seen, "repeated-samples", right)


def _other_samples(
    view: TargetView, step: int, owner: int, told: Sequence[Trained], seen: str, slug: str, right: str
) -> Violation:
    who = ranks(item.rank for item in told) if told else "no rank"
    attempts = sorted({item.attempt for item in told})
    where = f"attempts {' and '.join(map(str, attempts))}" if len(attempts) > 1 else f"attempt {owner}"
    attempt = view.attempt(owner)
    shown = max((item.index for item in told), default=attempt.start.index if attempt is not None else 0)
    return view.violation(
        NAME,
        f"Step {step}, trained by {who} in {where}, {seen}; expected: {right}.",
        attempt=owner,
        step=step,
        error_type=slug,
        evidence=sorted({item.index for item in told} or {shown}),
        expected=f"the samples of step {step} of the uninterrupted run: {right}",
        seen=seen,
    )


def _some(samples: Sequence[int]) -> str:
    more = f" and {len(samples) - SHOWN} more" if len(samples) > SHOWN else ""
    return f"sample{'s' if len(samples) != 1 else ''} {', '.join(map(str, samples[:SHOWN]))}{more}"


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """Over all attempts, by what the script told through the probe, beside what golden runs told."""
    expected = view.start.samples
    closing = view.closing
    if not expected:
        return NotJudged(
            "the script reports no samples with chaosckpt.probe.trained(), or other samples in each golden run"
        )
    if closing is None or closing.outcome != "finished":
        return NotJudged("the closing attempt did not finish")
    if view.topology_changed:
        return NotJudged("the number of ranks changed, and with it the samples of each step")
    if any(attempt.started_again for attempt in view.attempts):
        return NotJudged("a launcher restarted ranks within one attempt, and their reports cannot be told apart")
    # A later attempt trained a step anew when it resumed from before it: the last one to train a step is the one that counts.
    last: dict[int, tuple[int, list[int], int]] = {}
    for attempt in view.attempts:
        steps: dict[int, tuple[list[int], int]] = {}
        for at in attempt.all(j.Probed):
            if at.event.what == "trained":
                samples, _ = steps.get(at.event.step, ([], 0))
                steps[at.event.step] = ([*samples, *at.event.samples], at.index)
        if steps:
            last = {step: entry for step, entry in last.items() if step < min(steps)}
            last |= {step: (attempt.number, samples, index) for step, (samples, index) in steps.items()}
    for step, wanted in sorted(expected.items()):
        number, samples, index = last.get(step, (closing.number, [], closing.start.index))
        skipped, repeated = Counter(wanted) - Counter(samples), Counter(samples) - Counter(wanted)
        if skipped or repeated:
            attempt = next(other for other in view.attempts if other.number == number)
            seen = "; ".join(
                f"{what} {', '.join(map(str, sorted(which.elements())[:6]))}"
                for what, which in (("skipped", skipped), ("added", repeated))
                if which
            )
            return [
                view.violation(
                    NAME,
                    f"Step {step}, trained in attempt {number}, used other samples than in the uninterrupted run: {seen}.",
                    attempt=number,
                    step=step,
                    error_type=to_resume_is_enough(view, attempt) or "other-samples",
                    evidence=(index,),
                    expected=", ".join(map(str, wanted[:12])),
                    seen=seen,
                )
            ]
    return []


exactly_once_data = Invariant(
    name=NAME,
    holds=(
        "over all restarts every step trains on the samples of the uninterrupted run, with any number of ranks: none "
        "skipped, none repeated"
    ),
    of_target=_of_target,
    of_command=_of_command,
)
