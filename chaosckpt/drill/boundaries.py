"""Failure boundaries of a certificate: what is known of each after a drill, and of which nothing is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.drill.certificate import Boundary, Outcome, StepResult
from chaosckpt.drill.restart import ObservedRestart
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import plural

_ORDER: tuple[Outcome, ...] = ("failed", "failed clearly", "not tested", "survived")
"""Of several outcomes the first one of these is that of all together."""
_NOT_HERE: tuple[tuple[str, Guarantee | None, str], ...] = (
    (
        "loss of a node while the job runs",
        "node-loss",
        "a drill ends jobs in order or kills all ranks; `chaosckpt fuzz` takes nodes away",
    ),
    ("loss of power", "power-loss", "the drill kept all written data, synced or not"),
    (
        "files damaged at rest",
        "integrity",
        "the drill damaged no file; `chaosckpt fuzz` does, if the scenario names bit-flip or truncation",
    ),
    ("loss of shared storage", None, "the drill kept shared storage"),
)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several tests together; not tested where there are none."""
    return min(outcomes, key=_ORDER.index, default="not tested")


def boundaries(
    guarantees: Sequence[Guarantee], steps: Sequence[StepResult], restart: ObservedRestart
) -> tuple[Boundary, ...]:
    """One entry a failure boundary: those of the drill's steps, then those that a drill never crosses."""
    by_name = {step.name: step for step in steps}
    restored, trained = by_name["restore and verify"], by_name["train on"]
    fresh = restored.outcome if restored.outcome != "survived" else worst([restored.outcome, trained.outcome])
    words = restored.sentence if restored.outcome != "survived" else f"{restored.sentence} {trained.sentence}"
    files = sum(restart.local_files.values())
    found = [
        Boundary(
            name="end of the job, restart in a fresh allocation", outcome=fresh, sentence=words, steps=(1, 2, 3, 4)
        ),
        Boundary(
            name="loss of node-local storage",
            guarantee="local-storage-loss",
            outcome=fresh if files and restart.new is not None else "not tested",
            sentence=f"The drill deleted {plural(files, 'file')} from the node-local storage of the old nodes. {words}"
            if files
            else "The target had stored nothing on node-local storage.",
            steps=(2, 3) if files else (),
        ),
        _of_step(by_name["interrupt a later save"], "kill of all ranks in the middle of a save", "process-crash"),
        _of_step(by_name["world-size change"], "restart with another number of ranks", "world-size-change"),
        _of_step(by_name["another interpreter"], "restart under another interpreter or dependency set", None),
    ]
    found += [
        Boundary(name=name, guarantee=guarantee, outcome="not tested", sentence=f"{why[0].upper()}{why[1:]}.")
        for name, guarantee, why in _NOT_HERE
    ]
    return tuple(_promised(boundary, guarantees) for boundary in found)


def _of_step(step: StepResult, name: str, guarantee: Guarantee | None) -> Boundary:
    return Boundary(name=name, guarantee=guarantee, outcome=step.outcome, sentence=step.sentence, steps=(step.number,))


def _promised(boundary: Boundary, guarantees: Sequence[Guarantee]) -> Boundary:
    return msgspec.structs.replace(boundary, promised=boundary.guarantee in guarantees)
