"""What golden runs have shown of a command, and what is said where they tell too little."""

from __future__ import annotations

import pytest

from chaosckpt.commands.completeness import standard
from chaosckpt.engine.golden.command_facts import Golden, facts_of
from chaosckpt.engine.golden.command_run import Run
from chaosckpt.model.scenario import CommandSettings

COMMAND = CommandSettings(argv=("train", "{out}"), resumed=r"resumed from step (\d+)")


def finished(output: str = "") -> Run:
    return Run(outcome="finished", seconds=1.0, output=output)


@pytest.mark.parametrize(("said", "judged"), [((2, 4, 10), True), ((2, 4, 4), False)])
def test_a_recovery_that_says_another_step_than_the_newest(said: tuple[int, ...], judged: bool) -> None:
    """Goal: a script that picks another checkpoint than the newest without any fault isn't passed over in silence."""
    resumed = tuple(finished(f"resumed from step {step}") for step in said)
    files = standard([{step: {f"out:ckpt-{step}": (1, str(step))} for step in (2, 4, 10)}])
    facts = facts_of(
        COMMAND, Golden(one=finished(), two=finished(), resumed=resumed, saved=(2, 4, 10), standard=files), []
    )
    assert ("resumes" in facts.judged) is judged
    told = [remark for remark in facts.remarks if "after the save of step 10" in remark and "from step 4" in remark]
    assert bool(told) is not judged


def test_a_rolling_checkpoint_that_is_the_same_each_time_is_judged_by_its_content() -> None:
    """Goal: that a name's content differs from save to save is no doubt; that one save's differs from run to run is one."""
    for last, doubts in (("b", 0), ("c", 1)):
        runs = [{2: {"out:last": (1, "a")}, 4: {"out:last": (1, "b")}}, {4: {"out:last": (1, last)}}]
        golden = Golden(one=finished(), two=finished(), saved=(2, 4), standard=standard(runs), rolling=True)
        facts = facts_of(CommandSettings(argv=("train", "{out}")), golden, [])
        assert (
            len([remark for remark in facts.remarks if "in every run" in remark or "golden runs" in remark]) == doubts
        )
