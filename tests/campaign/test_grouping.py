"""Grouping: many violations of one cause are one finding with a count."""

from __future__ import annotations

import pytest

from chaosckpt.campaign.grouping import Groups, faces, identity
from chaosckpt.model.finding import Finding, RootCause
from chaosckpt.model.verdict import Violation

WRITE = RootCause("newest-complete", "persist", "write", "step_#/__#_#.distcp")
FSYNC = RootCause("newest-complete", "persist", "fsync", "step_#/__#_#.distcp")
OPEN = RootCause("newest-complete", "persist", "open_write", "step_#/__#_#.distcp")
OTHER = RootCause("progress", "commit", "rename", "step_#/.metadata.tmp", "OSError")


def test_a_new_cause_is_shrunk_once():
    """The first trial of a cause is to be shrunk; those that come meanwhile wait, and count when it is settled."""
    groups = Groups()
    assert [groups.see(WRITE, f"1:{i}") for i in (3, 5, 8)] == ["new", "pending", "pending"]
    assert groups.match(WRITE) is None
    group, fresh = groups.settle(WRITE, OPEN)
    assert fresh
    assert group.count == 3
    assert groups.see(WRITE, "1:9") == "known"
    assert group.trials == ["1:3", "1:5", "1:8", "1:9"]


def test_causes_that_shrink_alike_are_one_finding():
    """Different raw causes with one canonical cause count for one group, whose id is that of the canonical one."""
    groups = Groups()
    for number, raw in enumerate((WRITE, FSYNC)):
        groups.see(raw, f"1:{number}")
        group, fresh = groups.settle(raw, OPEN)
        assert fresh == (number == 0)
    assert group.count == 2
    assert group.id == identity(OPEN)
    assert groups.match(FSYNC) is groups.match(WRITE) is groups.match(OPEN) is group
    assert groups.see(OPEN, "1:7") == "known"
    assert groups.found == (group,)


def test_a_canonical_cause_that_shrank_before_leads_to_the_same_group():
    """What shrinks to a cause that itself once shrank to another belongs to that other."""
    groups = Groups()
    groups.see(WRITE, "1:0")
    group, _ = groups.settle(WRITE, OPEN)
    groups.see(FSYNC, "1:1")
    assert groups.settle(FSYNC, WRITE) == (group, False)


def test_other_causes_are_other_findings():
    """Another invariant is another finding, and its id differs."""
    groups = Groups()
    groups.see(WRITE, "1:0")
    groups.settle(WRITE, WRITE)
    assert groups.see(OTHER, "1:1") == "new"
    assert groups.match(OTHER) is None
    groups.settle(OTHER, OTHER)
    assert [group.cause for group in groups.found] == [WRITE, OTHER]


def test_a_cause_that_never_shows_again_may_come_anew():
    """Given up, it isn't remembered, and the trials that showed it are handed back."""
    groups = Groups()
    groups.see(WRITE, "1:0")
    groups.see(WRITE, "1:2")
    assert groups.give_up(WRITE) == ["1:0", "1:2"]
    assert groups.see(WRITE, "1:4") == "new"


def test_a_trial_counts_once():
    """A resumed campaign may see a trial again that it had counted already."""
    groups = Groups()
    groups.see(WRITE, "1:0")
    group, _ = groups.settle(WRITE, WRITE)
    groups.see(WRITE, "1:0")
    assert group.count == 1


def test_groups_are_taken_up_again():
    """A resumed campaign knows the raw causes that were settled before."""
    first = Groups()
    first.see(WRITE, "1:0")
    first.settle(WRITE, OPEN)
    second = Groups()
    second.restore(list(first.found))
    assert second.see(WRITE, "1:5") == second.see(OPEN, "1:6") == "known"
    assert [group.count for group in second.found] == [3]


@pytest.mark.parametrize(("cause", "start"), [(OPEN, "newest-complete-"), (OTHER, "progress-")])
def test_ids_are_the_same_everywhere(cause, start):
    """An id is the invariant and eight hexadecimal digits of the cause: nothing of this run is in it."""
    found = identity(cause)
    assert found == identity(RootCause(*[getattr(cause, name) for name in RootCause.__struct_fields__]))
    assert found.startswith(start)
    assert len(found) == len(start) + 8


def _finding(cause: RootCause, schedule: str) -> Finding:
    violation = Violation(invariant=cause.invariant, sentence="", attempt=1)
    return Finding(
        id=identity(cause),
        cause=cause,
        violation=violation,
        trial="1:1",
        count=1,
        schedule={},
        shrunk={"attempts": schedule},
        faults=(),
        reproduced=1,
        replays=1,
    )


def test_faces_of_one_schedule_and_place_are_told_together():
    """One shrunk schedule, struck at one place, is behind both; another schedule or another place is something else."""
    lead = _finding(WRITE, "a kill")
    face = _finding(RootCause("progress", WRITE.stage, WRITE.operation, WRITE.file_pattern, "OSError"), "a kill")
    other_place, other_schedule = _finding(OTHER, "a kill"), _finding(WRITE, "an error")
    assert faces([lead, other_place, face, other_schedule]) == [[lead, face], [other_place], [other_schedule]]
