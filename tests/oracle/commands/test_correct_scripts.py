"""No wolf is cried: what correct scripts do, in trials with faults, breaks no invariant."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.command import CommandSettings
from chaosckpt.oracle.cause import root_cause
from tests.oracle.commands.tales import SAVED, UNSAID, Tale, killed_in_save_4, operation


def passes(tale: Tale) -> None:
    verdict = tale.verdict()
    assert verdict.primary is None, verdict.primary
    assert verdict.outcome == "pass", verdict.reason


@pytest.mark.parametrize("judged", [SAVED, UNSAID])
def test_resuming_from_the_newest_complete(judged):
    """Killed in a save, it resumes from the one before and ends with the same result."""
    passes(killed_in_save_4(judged=judged).closes().resumes(2).saves(4, 6).finishes())


@pytest.mark.parametrize("judged", [SAVED, UNSAID])
def test_a_newer_complete_one_is_permitted(judged):
    """Killed behind the last write of a save, it may resume from it or from the one before."""
    for step in (2, 4):
        tale = Tale(judged).launch().saves(2).saves(4, said=False).cut()
        passes(tale.closes().resumes(step).saves(4, 6).finishes())


def test_a_pointer_that_lags():
    """A script that follows a pointer file isn't held to files that lie there complete, also when two launches died since."""
    tale = Tale(UNSAID, faults=[["cut"], ["cut"]]).launch().saves(2).saves(4, said=False).cut()
    tale.launch().resumes(2).cut("load of the recovery")
    passes(tale.closes().resumes(2).saves(4, 6).finishes())


@pytest.mark.parametrize("torn", [False, True])
def test_the_one_before_under_another_name(torn):
    """Killed between two renames, or in a file written in place, the checkpoint lies there as .bak only, and that is resumed from."""
    tale = Tale(SAVED, faults=[["cut"]]).launch().saves(2).removes(2)
    tale = tale.tears(8, "out:last.pt") if torn else tale
    tale.spare = (2,)
    passes(tale.cut().closes().resumes(2).saves(4, 6).finishes())


def test_what_an_abandoned_branch_left_is_not_required():
    """After a launch rightly resumed from an older step, its own saves count, and not the newer ones of the life before."""
    tale = Tale(SAVED, faults=[["stale"], ["cut"]]).launch().saves(2, 4).saves(6, said=False).cut("persist of save 6")
    tale.launch().resumes(2).fault("discover of the recovery", operation("out:.", "list"), kind="not-visible")
    tale.saves(4).cut("persist of save 6")
    passes(tale.closes().resumes(4).saves(6).finishes())


def test_rotation():
    """Removing older checkpoints when a newer one is complete is nobody's loss, also when it is killed in between."""
    tale = Tale(SAVED).launch().saves(2, 4, 6).removes(2).tears(4).cut("retire of save 6")
    passes(tale.closes().resumes(6).removes(4).saves(8).finishes())


def test_a_save_on_a_signal_is_unknown():
    """A step that no golden run saved may be resumed from, and is something that is left."""
    tale = (
        Tale(UNSAID, faults=[["sigterm"]]).launch().saves_unknown(1).fault("persist of save 2", kind="sigterm").killed()
    )
    passes(tale.closes().resumes(1).saves(2, 4, 6).finishes())


def test_other_bytes_after_a_change_of_ranks():
    """What a fresh start with another number of ranks saves has no golden run to be compared with."""
    tale = Tale(SAVED, faults=[["cut"], ["world-size", "cut"]]).launch(ranks=2).cut("persist of save 2")
    tale.launch(ranks=1).fault("", kind="world-size").tears(2).tears(4).says_saved(2, 4).cut("persist of save 4")
    tale.events = [e for e in tale.events if getattr(e, "kind", "") != "world-size"]
    verdict = tale.closes(ranks=1).resumes(4).tears(6).finishes(equal=None).verdict()
    assert verdict.primary is None


def test_other_bytes_without_a_fault_put_the_standard_in_doubt():
    """Where a launch without any fault leaves what no golden run did, completeness isn't judged, and the trial says so."""
    judged = ("checkpoints", "resumed", "resumes")
    resumed = killed_in_save_4(judged=judged).closes().resumes(2).tears(6).finishes()
    struck_later = (
        Tale(judged).launch().tears(2).tears(4).tears(6).cut("persist of save 6").closes().resumes(6).finishes()
    )
    for tale in (resumed, struck_later):
        verdict = tale.verdict()
        assert verdict.outcome == "inconclusive"
        assert "don't tell what a complete checkpoint is" in verdict.reason


def test_a_script_without_resume():
    """A fresh start is never a violation where golden runs did not show that it resumes, whatever it overwrites."""
    judged = ("checkpoints", "saved", "result", "exact")
    tale = Tale(judged, faults=[["cut"], ["cut"]]).launch().saves(2).tears(4).cut()
    tale.launch().removes(4).tears(2).cut("persist of save 2")
    verdict = tale.closes().saves(2, 4, 6).finishes().verdict()
    assert verdict.outcome == "pass", verdict
    assert any("--resume-args" in reason for reason in verdict.unjudged)


def test_a_script_whose_numbers_are_others():
    """Where it says another number than its files bear, steps are not compared."""
    verdict = (
        killed_in_save_4(judged=("checkpoints", "resumed", "result", "exact"))
        .closes()
        .resumes(1)
        .saves(4, 6)
        .finishes()
        .verdict()
    )
    assert verdict.outcome == "pass"
    assert "newest-complete" not in verdict.judged


def test_a_job_that_was_over_may_say_nothing():
    """Killed after its last save, a script that then only sees that all is done has not begun anew."""
    for judged in (SAVED, UNSAID):
        tale = Tale(judged).launch().saves(2, 4, 6).cut("persist of save 6")
        passes(tale.closes().finishes(operations=4))


def test_a_relaunch_after_the_end():
    """A launch after one that came to its end without a fault may do what it likes."""
    tale = Tale(SAVED, faults=[[], ["cut"]]).launch().saves(2, 4, 6).finishes()
    passes(tale.launch().cut("discover of the recovery").closes().saves(2, 4, 6).finishes())


def test_keeping_the_best_instead_of_the_newest():
    """A script that removes the newest of its own choice is not held to it."""
    tale = Tale(SAVED).launch().saves(2, 4).removes(4).tears(6).cut("persist of save 6")
    passes(tale.closes().resumes(2).saves(4).removes(4).saves(6).removes(6).finishes())


def test_a_file_that_nothing_needs():
    """Where the job went on from a checkpoint without some file and has the exact result, nothing was lost."""
    tale = Tale(SAVED).launch().saves(2).tears(4, "out:ckpt-4/README.md").cut()
    passes(tale.closes().resumes(4).saves(6).finishes())


def test_faults_in_the_recovery_excuse_it():
    """What a launch does in whose recovery a fault struck is not judged; neither is a later launch held to what it left behind."""
    tale = Tale(SAVED, faults=[["cut"], ["errno"]]).launch().saves(2, 4).tears(6).cut("persist of save 6")
    tale.launch().error("load of the recovery", operation("out:ckpt-4.pt", "read")).fails("OSError: [Errno 5]")
    passes(tale.closes().resumes(4).saves(6).finishes())


def test_another_number_of_ranks_may_end_elsewhere():
    """The result of other ranks is not compared with that of the first."""
    tale = killed_in_save_4().closes(ranks=2).resumes(2).saves(4, 6).finishes(equal=False)
    passes(tale)
    assert any("number of ranks" in reason for reason in tale.verdict().unjudged)


def test_told_to_resume_from_nothing():
    """With --resume-args a clear failure is right where nothing complete is there."""
    command = CommandSettings(argv=("python", "t.py", "{out}"), resume_argv=("--resume",))
    tale = Tale(SAVED, command=command).launch().tears(2).cut("persist of save 2")
    tale.closes().fails("ValueError: no valid checkpoint found in /o/out")
    assert tale.verdict().outcome == "pass"


@pytest.mark.parametrize(
    ("tail", "signal", "words"),
    [
        ("RuntimeError: [Errno 98] Address already in use", None, "Address already in use"),
        ("OSError: [Errno 28] No space left on device: '/x/ckpt-2'", None, "No space left"),
        ("", 9, "killed it"),
    ],
)
def test_trouble_of_the_machine(tail, signal, words):
    """A launch that the machine failed is no finding, and no pass."""
    tale = killed_in_save_4().closes().fails(tail, code=None if signal else 1, signal=signal)
    verdict = tale.verdict()
    assert verdict.outcome == "inconclusive"
    assert words in verdict.reason


@pytest.mark.parametrize(
    "said", ["FileNotFoundError: [Errno 2] No such file or directory: ", "python: can't open file "]
)
def test_a_script_that_is_removed_while_the_campaign_runs(said):
    """That there is no script to launch any more is no violation, and no pass."""
    tale = killed_in_save_4()
    assert tale.scenario.command is not None
    script = next(word for word in tale.scenario.command.argv if word.endswith(".py"))
    verdict = tale.closes().fails(f"{said}'/home/u/{script}'").verdict()
    assert verdict.outcome == "inconclusive"
    assert f"{script} is not there any more" in verdict.reason


def test_what_the_guard_refused_only_in_a_recovery():
    """A launch that failed because it was refused what the golden runs never asked for is in doubt, and the option is named."""
    verdict = killed_in_save_4().closes().refused().fails("PermissionError: [Errno 1] '/home/u/.cache'").verdict()
    assert verdict.outcome == "inconclusive"
    assert "--allow" in verdict.reason


def test_ranks_that_a_launcher_starts_again():
    """Several lines in one launch that a fault struck don't tell which start of its ranks they are about."""
    tale = Tale(SAVED, faults=[["cut"], ["sigkill"]]).launch().saves(2).tears(4).cut()
    tale.launch().resumes(2, 4).saves(4).fault("persist of save 6", kind="sigkill").finishes()
    passes(tale.closes().resumes(4).saves(6).finishes())


def test_damage_is_nobodys_promise():
    """Of a damaged file nothing is asked."""
    tale = Tale(SAVED, faults=[["cut"], ["bit-flip"]]).launch().saves(2, 4).cut("persist of save 6")
    tale.number += 1
    tale.damaged().fault()
    tale.number -= 1
    tale.launch().resumes(2).saves(4, 6).finishes()
    verdict = tale.closes().resumes(2).saves(4, 6).finishes(equal=False).verdict()
    assert verdict.primary is None


def probed(number: int, what: str, step: int, *, samples: tuple[int, ...] = (), digest: str = "") -> j.Probed:
    """What rank 0 told through the probe."""
    return j.Probed(attempt=number, rank=0, what=what, step=step, samples=samples, digest=digest)  # type: ignore[arg-type]


def probing(samples_of_3: tuple[int, ...] = (3,), digest: str = "two") -> Tale:
    """A script that tells its state and its samples: killed in save 4, resumed from step 2."""
    tale = Tale(SAVED).launch().saves(2).tears(4)
    first = tale.events[0]
    assert isinstance(first, j.TrialStarted)
    tale.events[0] = msgspec.structs.replace(first, samples={step: (step,) for step in (1, 2, 3, 4)})
    tale.cut()
    tale.events += [probed(0, "trained", step, samples=(step,)) for step in (1, 2, 3)]
    tale.events.append(probed(0, "saved", 2, digest="two"))
    tale.closes().resumes(2).saves(4, 6).finishes()
    tale.events.append(probed(1, "resumed", 2, digest=digest))
    tale.events += [probed(1, "trained", 3, samples=samples_of_3), probed(1, "trained", 4, samples=(4,))]
    return tale


def test_what_the_probe_tells():
    """The state that was saved and each sample once break nothing; other ones do, and no fault's place is behind that."""
    passes(probing())
    for tale, invariant in ((probing(samples_of_3=(1,)), "data-once"), (probing(digest="other"), "full-state")):
        verdict = tale.verdict()
        assert str(root_cause(tale.journal(), verdict)) == f"{invariant} / inexact-resume"
