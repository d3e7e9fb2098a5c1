"""What happened, launch by launch, and which save wrote which file."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.digest import StateDigest
from chaosckpt.model.finding import StoredFile, StoredStorage
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology
from chaosckpt.report.finding_story import story, writers

DIGEST = StateDigest(
    rank=0,
    world_size=1,
    params={},
    optimizer={},
    optimizer_scalars={},
    scheduler={},
    step=2,
    rng={},
    sampler={},
    stamp=(1, 2, 0, 1),
)


def saved(step: int, attempt: int = 0, *, acknowledged: bool = True) -> list[j.AnyEvent]:
    begun: list[j.AnyEvent] = [j.SaveStarted(attempt=attempt, rank=rank, step=step, digest=DIGEST) for rank in (0, 1)]
    told: list[j.AnyEvent] = [
        j.Acknowledged(attempt=attempt, rank=rank, step=step, level="shared") for rank in (0, 1) if acknowledged
    ]
    return begun + told


EVENTS: list[j.AnyEvent] = [
    j.AttemptStarted(attempt=0, ranks=(2,), intent="start"),
    *saved(2),
    *saved(4, acknowledged=False),
    j.FaultInjected(attempt=0, fault=0, kind="cut", evidence=""),
    j.AttemptEnded(attempt=0, outcome="killed", operations=(4, 1)),
    j.FaultInjected(attempt=1, fault=0, kind="bit-flip", evidence=""),
    j.AttemptStarted(attempt=1, ranks=(2,), intent="resume"),
    j.Recovered(attempt=1, rank=0, chosen=2, digest=DIGEST),
    j.Raised(attempt=1, rank=1, where="recover", step=None, error_type="EOFError", message="a\nb"),
    j.RankExited(attempt=1, rank=1, exit_code=1),
    j.AttemptEnded(attempt=1, outcome="failed"),
]
TOLD = {(0, 0): "kill of the whole job before rank 0's first write to a", (1, 0): "a bit of a flipped"}


def test_launch_by_launch():
    """Saves with their acknowledgement, the fault where it struck, damage before the launch that finds it, each rank's recovery."""
    first, second = story(EVENTS, TOLD)
    assert first == (
        "First launch: the job (2 ranks) starts with nothing saved. Step 2 is saved, and every rank is told that it is safe on "
        "shared storage. Step 4 begins to be saved. Fault: kill of the whole job before rank 0's first write to a."
    )
    assert second == (
        "Before the second launch: a bit of a flipped. Second launch: the job (2 ranks) restarts and recovers. On rank 0: recovery "
        "says that it loaded step 2. On rank 1: recovery fails (EOFError: b)."
    )


def test_a_commands_launch_is_told_by_its_output_and_its_files():
    """What it said, how it ended, and which checkpoints were complete."""
    events: list[j.AnyEvent] = [
        j.AttemptStarted(attempt=0, ranks=(1,), intent="resume"),
        j.Said(attempt=0, what="resumed", step=2, line=""),
        j.Said(attempt=0, what="saved", step=4, line=""),
        j.RankExited(attempt=0, rank=0, exit_code=1, stderr_tail="Traceback\nEOFError\n"),
        j.AttemptEnded(attempt=0, outcome="failed"),
        j.CheckpointsSeen(attempt=0, complete=(4,), partial=(6,), differing={6: "out:ckpt-6"}),
    ]
    (told,) = story(events, {})
    assert told.endswith(
        "It reports that it resumed from step 2. It reports as saved: step 4. The process of rank 0 ends with status 1: EOFError. "
        "On storage then: step 4 is complete, step 6 is not (ckpt-6)."
    )


def test_each_file_is_ascribed_to_the_save_that_wrote_it_last():
    """As far as each rank came: a later save that had not reached the file doesn't count; a temporary name is its final one."""

    def point(rank: int, op: str, path: str, step: int, nth: int = 0) -> Point:
        return Point(Address(rank, "main", op, path, 1, nth), Label("persist", step))

    run = GoldenRun(
        topology=Topology((2,)),
        resumed_from=None,
        points=(
            point(0, "open_write", "shared:a.tmp", 2),
            point(0, "rename", "shared:a.tmp", 2),
            point(1, "write", "shared:b", 2),
            point(0, "stat", "shared:c", 4),
            point(0, "open_write", "shared:c", 4),
            point(0, "open_write", "shared:a.tmp", 4),
            point(1, "write", "shared:b", 4, 1),
        ),
    )
    names = ("shared/a", "shared/b", "shared/c", "shared/d")
    storage = StoredStorage(files=tuple(StoredFile(path=name) for name in names))
    assert writers(Census(runs=(run,)), EVENTS, storage, 1) == {
        "shared/a": "the save of step 2",
        "shared/b": "the save of step 2",
        "shared/c": "the save of step 4, which was interrupted",
    }
