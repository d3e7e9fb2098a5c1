"""What the golden runs of a command have shown, beside its census: which of its signs are known and steady."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.commands.completeness import CompletenessModel
from chaosckpt.commands.launches import Warmth
from chaosckpt.commands.output import samples_by_step
from chaosckpt.commands.trajectories import Positions
from chaosckpt.engine.golden.command_run import Run
from chaosckpt.engine.golden.observing import Observed
from chaosckpt.engine.runner.command_arena import same_result
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import CommandSettings
from chaosckpt.model.topology import Topology

SHOWN = 1500
_MORE = {
    "resumed": "Add --resumed to also check which checkpoint the script resumes from.",
    "saved": "Add --saved to also check that every step the script reports as saved can be loaded.",
    "result": "Add --result to also check that the result equals that of an uninterrupted run.",
}


class CommandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the golden runs of a command have shown, beside its census."""

    checkpoints: str | None = None
    """The glob of its checkpoints: the user's, else the one that its files suggest."""
    numbers: tuple[int, ...] = ()
    """The steps of its saves, in order, where its checkpoint always has the same name."""
    nonces: tuple[str, ...] = ()
    """Expressions for the parts of its file names that are drawn anew in each run."""
    standard: CompletenessModel = CompletenessModel()
    judged: tuple[str, ...] = ()
    """Which signs are known and steady; see TrialStarted.judged."""
    result: str = ""
    """The result of the uninterrupted run: a digest, or what the result command printed."""
    samples: dict[int, tuple[int, ...]] = {}
    """Of a script that tells them: the samples of each step of the uninterrupted run."""
    refused: tuple[str, ...] = ()
    """What the command tried and was not let do, though it finished."""
    remarks: tuple[str, ...] = ()
    """What could not be judged, and why, in sentences."""
    warmth: Warmth = Warmth()
    """How it is launched."""
    launcher: str = ""
    """What starts its ranks when its user runs it, in a word."""
    cold: Deadlines = Deadlines()
    """How long that way may take."""
    observed: Observed = Observed()
    """What its golden runs have shown to an observer."""
    topology: Topology | None = None
    """That of its golden runs, whose ranks may be more than its command line tells."""


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """The golden runs of a command: from the start, and from each step that `two` saved. Where `two` was warm the others were cold."""

    one: Run
    two: Run
    again: Run | None = None
    """A second cold one, where `two` was warm."""
    observed: Observed = Observed()
    resumed: tuple[Run, ...] = ()
    saved: tuple[int, ...] = ()
    """The steps that the second run saved."""
    standard: CompletenessModel = CompletenessModel()
    numbers: tuple[int, ...] = ()
    rolling: bool = False
    nonces: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[Run, ...]:
        """The runs from the start beside `two`."""
        return (self.one,) if self.again is None else (self.one, self.again)


def facts_of(command: CommandSettings, golden: Golden, remarks: Sequence[str]) -> CommandFacts:
    """What can be judged by. Raises UsageError for a sign of the user's that no golden run has shown."""
    two, said = golden.two, list(remarks)
    judged = [*_checkpoints(golden, said), *_lines(command, golden, said), *_result(command, golden, said)]
    seen = bool(golden.observed.positions.steps) and "resumed" not in judged
    judged += ["resumed", "resumes"] if seen else []
    said += golden.observed.sentences()
    given = {
        "resumed": "resumed" in judged,
        "saved": "saved" in judged,
        "result": command.result is not None or command.result_command is not None,
    }
    steady = all(samples_by_step(run.told) == samples_by_step(two.told) for run in golden.others)
    return CommandFacts(
        checkpoints=command.checkpoints,
        numbers=golden.numbers,
        nonces=golden.nonces,
        standard=golden.standard,
        judged=tuple(judged),
        result=two.result or "" if "result" in judged else "",
        samples=samples_by_step(two.told) if steady else {},
        observed=golden.observed if seen else msgspec.structs.replace(golden.observed, positions=Positions()),
        refused=two.refused,
        remarks=(*said, *(words for sign, words in _MORE.items() if not given[sign])),
    )


def _checkpoints(golden: Golden, remarks: list[str]) -> list[str]:
    """Whether it is known what complete checkpoints look like."""
    if not golden.saved:
        return []
    if golden.rolling and golden.standard.alike():
        remarks.append(
            "the checkpoint has the same name in every save and other bytes in every run, so its step cannot be told and the "
            "checkpoints on storage are not judged"
        )
        return []
    if golden.rolling and not golden.standard.steady():
        remarks.append(
            "the checkpoint has the same name in every save and other bytes in every run, so only a checkpoint that equals one of a "
            "golden run is judged complete"
        )
    if not golden.rolling and not golden.standard.same_content:
        remarks.append(
            "no checkpoint file has the same bytes in all golden runs and golden recoveries, so completeness is judged by file names "
            "and sizes"
        )
    return ["checkpoints"]


def _lines(command: CommandSettings, golden: Golden, remarks: list[str]) -> list[str]:
    """Which lines were said, or told by the probe, and whether the step that was resumed from is always said."""
    judged = []
    two, resumed = golden.two, golden.resumed
    tells = {what: any(at.what == what for run in (two, *resumed) for at in run.told) for what in ("resumed", "saved")}
    if command.resumed is not None or tells["resumed"]:
        steps = [run.said(command.resumed, "resumed") for run in resumed]
        if resumed and not any(steps):
            printed = resumed[0].output.strip()[-SHOWN:] or "nothing"
            raise UsageError(
                f"--resumed {command.resumed!r} matches no line of a run that had a checkpoint to resume from (if the script "
                f"resumes only with certain arguments, name them with --resume-args); the command printed: {printed}"
            )
        judged.append("resumed")
        if _say_their_step(golden.saved, steps):
            judged.append("resumes")
        else:
            remarks.append(_other_steps(golden.saved, steps))
    if command.saved is not None or tells["saved"]:
        judged.append("saved")
    return judged


def _result(command: CommandSettings, golden: Golden, remarks: list[str]) -> list[str]:
    """Whether the end is the same each time, and each time that it is resumed."""
    one, two = golden.one.result, golden.two.result
    if one is None or two is None:
        return []
    differing = [run.result for run in golden.others if run.result and not same_result(run.result, two, command)]
    if differing:
        one = differing[0]
        remarks.append(
            f"two golden runs ended with different results ({one} and {two}): the command is not deterministic, so the results of "
            "resumed runs are not judged"
        )
        return []
    ends = [run.result for run in golden.resumed if run.outcome == "finished"]
    exact = bool(ends) and all(end is not None and same_result(two, end, command) for end in ends)
    return ["result", "exact"] if exact else ["result"]


def _say_their_step(saved: Sequence[int], said: Sequence[Sequence[int | None]]) -> bool:
    """Whether each golden recovery said the very step that it was given, and no other.

    From the last step there may be nothing left to do, so that it may say nothing.
    """
    told = list(zip(saved, map(set, said), strict=False))
    return bool(told) and all(
        steps == {step} or (not steps and place > 0 and place == len(told) - 1)
        for place, (step, steps) in enumerate(told)
    )


def _other_steps(saved: Sequence[int], said: Sequence[Sequence[int | None]]) -> str:
    """What golden recoveries said in place of the step that they were given."""
    other = next(((step, set(steps)) for step, steps in zip(saved, said, strict=False) if set(steps) != {step}), None)
    if other is None:
        return "no golden recovery was run, so the checkpoint that the command resumes from is not judged"
    step, steps = other
    told = " and ".join(str(step) for step in sorted(step for step in steps if step is not None)) or "none"
    return (
        f"without any fault, after the save of step {step}, the command reported that it resumed from step {told}: it picks another "
        "checkpoint than the newest, or its lines and its files number steps differently, so the checkpoint that it resumes from is "
        "not judged"
    )
