"""ack-truth: what was acknowledged can be loaded, whatever error was met on the way."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.audits import Checked, checked, unfinished
from chaosckpt.oracle.injected import Injected, overcome
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    found = checked(view)
    if not found:
        notes = "; ".join(words for words, _ in unfinished(view))
        return NotJudged(notes or "no audit loaded a checkpoint that had been acknowledged and was still owed")
    wrong: dict[tuple[int, int], Checked] = {}
    for item in found:
        # One that can't be loaded after this attempt can't be after the next one either.
        if item.problem:
            wrong.setdefault(item.save.key, item)
    return [_violation(view, item) for item in wrong.values()]


def _violation(view: TrialView, item: Checked) -> Violation:
    save = item.save
    errors = overcome(view, save)
    injected = f" though {_told(errors)}," if errors else ""
    last = max(index for levels in save.acknowledged.values() for index in levels.values())
    return Violation(
        invariant=ack_truth.name,
        sentence=(
            f"Every rank was told that {save} is safe ({', '.join(save.levels)}): acknowledged{injected} and {item.problem} "
            f"(audit after attempt {item.attempt})." + ("" if errors else aftermath(view, item.index, item.attempt))
        ),
        attempt=item.attempt,
        rank=item.rank,
        step=save.step,
        path=errors[0].at.event.operation.address.path if errors else struck_path(view, item.index, item.attempt),
        expected=f"{save}, exactly as it was captured",
        seen=item.problem,
        error_type=item.slug,
        evidence=tuple(sorted({*save.evidence, *(error.at.index for error in errors), last, item.index})),
    )


def _told(errors: list[Injected]) -> str:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0]}{more}"


ack_truth = Invariant(
    name="ack-truth",
    holds="every checkpoint that was acknowledged, survives and is still listed loads exactly, also after an error",
    judge=_judge,
)
