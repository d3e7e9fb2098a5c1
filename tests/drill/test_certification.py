"""A certificate says of each failure boundary what was tested, and its exit code follows from what was asked."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.drill.certificate import Certificate
from chaosckpt.drill.certification import Carried, Seen, certificate
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import Scenario
from tests.drill.drill_journals import asking, refused, restart, restored, saved
from tests.drill.test_steps import without_optimizer
from tests.oracle.journals import SCENARIO, TargetJournal

ALL: tuple[Guarantee, ...] = ("process-crash", "node-loss", "local-storage-loss", "world-size-change")


def killed(*endings: str) -> tuple:
    found = []
    for ending in endings:
        story = TargetJournal((1, 1), faults=[["cut"]]).attempt().recovers(None).saves(2).starts_save(4)
        story.fault("cut", label="persist of save 4").exits(by="fault").ends("killed")
        found.append(restart(restored(story, chosen=2) if ending == "goes on" else refused(story))[1])
    return tuple(found)


def of(
    story: TargetJournal,
    scenario: Scenario = SCENARIO,
    *,
    kills: tuple = ("goes on", "goes on"),
    files: int = 0,
    **more,
) -> Certificate:
    seen = Seen(
        known_step=4,
        later_step=6,
        gate="seccomp",
        main=Carried(*restart(story, files=files)),
        interruptions=killed(*kills),
        changes=more.get("changes", ()),
        elsewhere=more.get("elsewhere"),
    )
    return certificate(scenario, ALL, seen)


def outcomes(found: Certificate) -> dict[str, str]:
    return {boundary.name: boundary.outcome for boundary in found.boundaries}


def test_a_good_drill_survives_what_was_tested_and_nothing_else():
    """Two boundaries were crossed; six more are named, and of none of them anything is said."""
    found = of(restored(saved()))
    assert (found.held, found.exit_code) == (True, 0)
    told = outcomes(found)
    survived = {name for name, outcome in told.items() if outcome == "survived"}
    assert survived == {"end of the job, restart in a fresh allocation", "kill of all ranks in the middle of a save"}
    assert {outcome for name, outcome in told.items() if name not in survived} == {"not tested"}
    assert len(told) == 9


def test_lost_node_local_storage_counts_only_where_there_was_something_to_lose():
    """With files on the old nodes the loss was survived; without any, nobody knows."""
    assert outcomes(of(restored(saved()), files=3))["loss of node-local storage"] == "survived"
    assert outcomes(of(restored(saved()), files=0))["loss of node-local storage"] == "not tested"


def test_a_clear_refusal_is_no_restore():
    """The boundary says that it failed clearly, and the exit code that what was asked did not hold."""
    found = of(refused(saved()))
    assert outcomes(found)["end of the job, restart in a fresh allocation"] == "failed clearly"
    assert found.exit_code == 1


def test_wrong_state_is_a_failure():
    """Optimizer state that did not come back fails the boundary."""
    found = of(restored(saved(), but=without_optimizer))
    assert outcomes(found)["end of the job, restart in a fresh allocation"] == "failed"
    assert found.exit_code == 1


def test_what_was_asked_and_could_not_be_tested_is_no_success():
    """No kill landed: nothing failed, and the exit code is that of a drill that says too little."""
    found = of(restored(saved()), kills=())
    assert (found.held, found.exit_code) == (False, 3)


def test_a_world_size_change_that_was_asked_for_is_part_of_the_verdict():
    """It is told for its topology, and its refusal ends with exit code 1."""
    scenario = asking(restore_ranks=((1,),))
    good = Carried(
        *restart(saved().attempt((1,), closing=True).recovers(4).saves(6).finishes().ends("finished").reference(4))
    )
    bad = Carried(*restart(refused_by_one(saved())))
    found = of(restored(saved()), scenario, changes=(good,))
    assert outcomes(found)["restart with another number of ranks"] == "survived"
    assert found.exit_code == 0
    found = of(restored(saved()), scenario, changes=(good, bad))
    assert outcomes(found)["restart with another number of ranks"] == "failed clearly"
    assert found.exit_code == 1


def refused_by_one(story: TargetJournal) -> TargetJournal:
    story.attempt((1,), closing=True).begins_recovery()
    return story.raises("recover", "CheckpointError", "checkpoint in /shared was saved by 2 ranks").ends("failed")


def test_both_version_sets_are_kept():
    """Those of the ranks that saved, and of those that restored under another interpreter."""
    scenario = asking(restore_python="/other/python")
    told, findings = restart(restored(saved()), executable="/other/python", versions={"python": "CPython 3.13.1"})
    told = msgspec.structs.replace(told, python="/other/python")
    found = of(restored(saved()), scenario, elsewhere=Carried(told, findings))
    assert found.versions["saved"]["python"] == "CPython 3.11.7"
    assert found.versions["restored elsewhere"] == {"python": "CPython 3.13.1"}
    assert outcomes(found)["restart under another interpreter or dependency set"] == "survived"


@pytest.mark.parametrize("story", [restored(saved()), refused(saved()), restored(saved(), but=without_optimizer)])
def test_a_certificate_round_trips_through_json(story):
    """What `--json` prints can be read back as the same value."""
    found = of(story, files=2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Certificate) == found
