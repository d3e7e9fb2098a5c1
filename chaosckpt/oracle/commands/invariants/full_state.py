"""full-state: what a script that tells its state holds after it resumed is what it held when it saved."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands.invariant import CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.storage import to_resume_is_enough
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged
from chaosckpt.oracle.view import At


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    found: list[Violation] = []
    subjects = 0
    for launch in view.launches:
        for at in launch.all(j.Probed):
            if at.event.what != "resumed" or not at.event.digest:
                continue
            saved = _saved_before(view, launch, at.event)
            if not saved:
                continue
            subjects += 1
            if at.event.digest not in {other.event.digest for other in saved}:
                found.append(_other_state(view, launch, at, saved[-1]))
    return (
        found
        if subjects
        else NotJudged("the script tells no state: chaosckpt.probe, with the state in saved() and resumed()")
    )


def _saved_before(view: CommandView, launch: Launch, resumed: j.Probed) -> list[At[j.Probed]]:
    """What this rank told of its saves of that step before, in the same number of ranks."""
    return [
        at
        for other in view.launches
        if other.number <= launch.number and other.world_size == launch.world_size
        for at in other.all(j.Probed)
        if (at.event.what, at.event.rank, at.event.step) == ("saved", resumed.rank, resumed.step) and at.event.digest
    ]


def _other_state(view: CommandView, launch: Launch, at: At[j.Probed], saved: At[j.Probed]) -> Violation:
    return violation(
        view,
        launch,
        full_state.name,
        f"In attempt {launch.number} rank {at.event.rank} resumed from step {at.event.step} with another state than it had saved: "
        f"{at.event.digest[:8]} instead of {saved.event.digest[:8]}.",
        to_resume_is_enough(view, launch) or "other-state",
        (saved.index, at.index),
        expected=saved.event.digest,
        seen=at.event.digest,
        step=at.event.step,
    )


full_state = CommandInvariant(
    name="full-state",
    holds="after it resumed, a script that tells its state holds what it had saved",
    judge=_judge,
)
