"""data-once: over all launches, each step that counts was trained on the samples of the uninterrupted run."""

from __future__ import annotations

from collections import Counter

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands.invariant import CommandInvariant, violation
from chaosckpt.oracle.commands.storage import to_resume_is_enough
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    expected = view.start.samples
    closing = view.closing
    if not expected:
        return NotJudged("the script tells no samples, or not the same in two golden runs: chaosckpt.probe.trained()")
    if closing is None or closing.outcome != "finished":
        return NotJudged("the closing attempt did not finish")
    if view.topology_changed:
        return NotJudged("the number of ranks changed, and with it what a step trains on")
    if any(launch.started_again for launch in view.launches):
        return NotJudged("a launcher started ranks again within one launch, and what they told isn't told apart")
    # A later launch trained a step anew when it resumed from before it: the last one to train a step is the one that counts.
    last: dict[int, tuple[int, list[int], int]] = {}
    for launch in view.launches:
        steps: dict[int, tuple[list[int], int]] = {}
        for at in launch.all(j.Probed):
            if at.event.what == "trained":
                samples, _ = steps.get(at.event.step, ([], 0))
                steps[at.event.step] = ([*samples, *at.event.samples], at.index)
        if steps:
            last = {step: entry for step, entry in last.items() if step < min(steps)}
            last |= {step: (launch.number, samples, index) for step, (samples, index) in steps.items()}
    for step, wanted in sorted(expected.items()):
        number, samples, index = last.get(step, (closing.number, [], closing.start.index))
        skipped, repeated = Counter(wanted) - Counter(samples), Counter(samples) - Counter(wanted)
        if skipped or repeated:
            launch = next(other for other in view.launches if other.number == number)
            seen = "; ".join(
                f"{what} {', '.join(map(str, sorted(which.elements())[:6]))}"
                for what, which in (("skipped", skipped), ("trained besides", repeated))
                if which
            )
            return [
                violation(
                    view,
                    launch,
                    data_once.name,
                    f"Step {step}, as attempt {number} trained it, is not what the uninterrupted run trained: {seen}.",
                    to_resume_is_enough(view, launch) or "other-samples",
                    (index,),
                    expected=", ".join(map(str, wanted[:12])),
                    seen=seen,
                    step=step,
                )
            ]
    return []


data_once = CommandInvariant(
    name="data-once",
    holds="each step is trained on the samples of the uninterrupted run, none skipped and none repeated",
    judge=_judge,
)
