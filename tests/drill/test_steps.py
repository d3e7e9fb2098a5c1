"""The steps of a drill say what the journal shows, each at its own step, and no more."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.drill import steps
from chaosckpt.drill.evidence import parts
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest
from tests.drill.drill_journals import KNOWN, asking, lists, refused, restart, restored, saved
from tests.oracle.journals import SCENARIO, TargetJournal


def without_optimizer(digest: StateDigest) -> StateDigest:
    return msgspec.structs.replace(digest, optimizer={})


def with_other_streams(digest: StateDigest) -> StateDigest:
    return msgspec.structs.replace(digest, rng=dict.fromkeys(digest.rng, "other"))


def test_a_good_restart_holds_at_every_step():
    """Saved, restored, every part equal on every rank, and trained on bit for bit."""
    told, found = restart(restored(saved()))
    assert steps.saved(told, found).held
    assert steps.ended(SCENARIO, told).held
    third = steps.restored(told, found)
    assert third.held
    assert {check.part for check in third.parts} == {
        "step",
        "parameters",
        "optimizer",
        "scheduler",
        "random streams",
        "data position",
    }
    assert {check.rank for check in third.parts} == {0, 1}
    fourth = steps.trained(SCENARIO, told, found)
    assert fourth.held
    assert "Steps 5 to 6" in fourth.sentence
    assert any("#" in line for line in third.evidence)


def test_a_save_that_the_target_does_not_list_is_not_confirmed():
    """Acknowledged by every rank, but not in the target's own list: step 1 fails."""
    story = TargetJournal((1, 1)).attempt().recovers(None).saves(2).saves(KNOWN).finishes(KNOWN).ends("finished")
    told, found = restart(restored(lists(story, 2).reference(0, KNOWN)))
    first = steps.saved(told, found)
    assert (first.outcome, first.held) == ("failed", False)
    assert "lists 2" in first.sentence


def test_a_save_that_raises_leaves_the_later_steps_untested():
    """Without a confirmed save nothing else is said of the target."""
    story = TargetJournal((1, 1)).attempt().recovers(None).starts_save(2)
    story.raises("save", "OSError", "no space left on /shared", step=2).ends("failed")
    told, found = restart(story, new=False)
    assert steps.saved(told, found).outcome == "failed clearly"
    for one in (steps.ended(SCENARIO, told), steps.restored(told, found), steps.trained(SCENARIO, told, found)):
        assert (one.outcome, one.held) == ("not tested", False)


@pytest.mark.parametrize(("but", "part"), [(without_optimizer, "optimizer"), (with_other_streams, "random streams")])
def test_a_lost_part_fails_the_restore_and_leaves_the_training_untested(but, part):
    """What is missing after the restore is found at step 3, and named by its part on its rank."""
    told, found = restart(restored(saved(), but=but))
    assert steps.saved(told, found).held
    third = steps.restored(told, found)
    assert third.outcome == "failed"
    assert {check.part for check in third.parts if not check.equal} == {part}
    assert steps.trained(SCENARIO, told, found).outcome == "not tested"


def test_an_older_checkpoint_fails_the_restore():
    """Step 4 was safe, and step 2 was taken."""
    told, found = restart(restored(saved(), chosen=2))
    assert steps.restored(told, found).outcome == "failed"


def test_training_that_departs_fails_step_four():
    """The state came back whole, and what was trained from there isn't the golden trajectory."""
    story = saved().attempt(closing=True).recovers(KNOWN)
    story.loss = lambda step, rank, world: (0.5 + step).hex()
    told, found = restart(story.saves(6).finishes().ends("finished").reference(KNOWN))
    assert steps.restored(told, found).held
    assert steps.trained(SCENARIO, told, found).outcome == "failed"


def test_a_declared_tolerance_is_kept_and_told():
    """With losses a little off, a tolerance above the difference holds, one below doesn't; the sentence has both numbers."""
    for tolerance, holds in ((0.2, True), (0.05, False)):
        scenario = asking(tolerance=tolerance, tolerance_reason="another BLAS")
        story = saved().attempt(closing=True).recovers(KNOWN)
        story.loss = lambda step, rank, world: (step * 100 + rank * 10 + world + (0.1 if rank == 0 else 0.0)).hex()
        told, found = restart(story.saves(6).finishes().ends("finished").reference(KNOWN), scenario=scenario)
        fourth = steps.trained(scenario, told, found)
        assert fourth.held is holds
        assert not holds or ("0.1" in fourth.sentence and "another BLAS" in fourth.sentence)


def test_a_refusal_that_names_what_it_looked_for_is_a_clear_failure():
    """Every rank exits with an error that has the path; that is no restore, but it is clear."""
    told, found = restart(refused(saved()))
    third = steps.restored(told, found)
    assert (third.outcome, third.held) == ("failed clearly", False)
    assert "/shared/step-*" in third.sentence


def test_a_refusal_without_a_word_is_a_failure():
    """An error that names nothing is not clear."""
    told, found = restart(refused(saved(), message="boom"))
    assert steps.restored(told, found).outcome == "failed"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"environment": ("HOME", "TMPDIR")}, "had the environment variables HOME"),
        ({"argv": ("python", "-m", "chaosckpt.engine.forkserver.server")}, "not started by exec"),
        ({"temporary": "/tmp/old"}, "temporary directory of an old rank"),
        ({"local_files": ("step-4/rank-0.pt",)}, "found step-4/rank-0.pt"),
        ({"filters": 1}, "ran under 1 system call filter of its own"),
        ({"executable": "/other/python"}, "ran under /other/python"),
        ({"pid": 100, "began": "100"}, "is a process of the old allocation"),
    ],
)
def test_an_allocation_that_is_not_fresh_proves_nothing(more, words):
    """Each way in which something old could have come along is seen, and makes the step untested."""
    told, _ = restart(restored(saved()), **more)
    second = steps.ended(SCENARIO, told)
    assert (second.outcome, second.held) == ("not tested", False)
    assert words in second.sentence


def test_what_the_scenario_names_may_come_along():
    """An environment variable in drill.environment is none too many, and one that isn't set is told."""
    scenario = asking(environment=("AWS_REGION", "NOT_SET"))
    told, _ = restart(restored(saved()), environment=("AWS_REGION", "TMPDIR"))
    second = steps.ended(scenario, told)
    assert second.held
    assert any("NOT_SET" in line for line in second.evidence)


def test_parts_of_another_world_are_compared_as_one():
    """With another number of ranks parameters and the like are compared over all ranks, and streams have to be distinct."""
    story = saved().attempt((1,), closing=True).recovers(KNOWN).saves(6).finishes().ends("finished")
    told, found = restart(story)
    checks = parts(found, told.known_step)
    assert {check.part for check in checks if check.rank is None} == {"parameters", "optimizer", "scheduler", "step"}
    assert {check.part for check in checks if check.rank == 0} == {"data position", "random streams"}
    assert all(check.equal for check in checks)


def test_another_world_with_streams_of_its_own_is_restored_but_not_compared():
    """Where other ranks begin with other random streams than the golden job, as they may, step 6 holds by what was restored alone."""
    scenario = asking(restore_ranks=((1,),))
    story = saved().attempt((1,), closing=True).recovers(KNOWN).saves(6).finishes().ends("finished")
    told, found = restart(story.reference(KNOWN, start=with_other_streams))
    assert steps.trained(scenario, told, found).outcome == "not tested"
    sixth = steps.resized(scenario, [(told, found)])
    assert (sixth.outcome, sixth.held) == ("survived", True), sixth.sentence
    assert "could not be compared" in sixth.sentence


def test_what_was_not_asked_for_is_not_tested():
    """Without drill.restore_ranks and drill.restore_python steps 6 and 7 are neither asked nor held."""
    for one in (steps.resized(SCENARIO, ()), steps.elsewhere(SCENARIO, None)):
        assert (one.asked, one.outcome, one.held) == (False, "not tested", False)


def interrupted(*endings: str) -> list:
    """Trials in which the job was killed in the save of step 4, and went on in these ways."""
    found = []
    for ending in endings:
        story = TargetJournal(
            (1, 1), faults=[["cut"]], guarantees=() if ending == "refused, not promised" else ("process-crash",)
        )
        story.attempt().recovers(None).saves(2).starts_save(4)
        if ending == "missed":
            story.acknowledges(4).finishes().ends("finished")
            story.events.append(j.FaultNotInjected(attempt=0, fault=0, kind="cut", reason="it was never reached"))
            restored(story, chosen=4)
        else:
            story.fault("cut", label="persist of save 4", needs=("process-crash",)).exits(by="fault").ends("killed")
        if ending == "goes on":
            restored(story, chosen=2)
        elif ending.startswith("refused"):
            refused(story)
        elif ending == "torn":
            restored(story, chosen=2, but=without_optimizer)
        found.append(steps.interruption(restart(story)[1]))
    return found


@pytest.mark.parametrize(
    ("endings", "outcome", "held"),
    [
        (("goes on", "goes on"), "survived", True),
        (("goes on", "refused"), "failed clearly", False),
        (("goes on", "refused, not promised"), "failed clearly", True),
        (("goes on", "refused", "torn"), "failed", False),
        (("goes on", "missed"), "not tested", False),
        (("goes on", "goes on", "missed"), "survived", True),
        ((), "not tested", False),
    ],
)
def test_interruptions_are_as_good_as_the_worst_of_them(endings, outcome, held):
    """Last-complete each time holds; a clear refusal holds only where nothing was promised; one kill is no proof."""
    result = steps.interrupted(SCENARIO, interrupted(*endings), 4, "seccomp")
    assert (result.outcome, result.held) == (outcome, held), result.sentence
    assert len(result.evidence) == len(endings)
