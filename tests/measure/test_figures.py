"""From samples to figures: known costs of a target, measured by a given clock, come out exactly."""

from __future__ import annotations

from pathlib import Path

import msgspec

from chaosckpt.measure import figures
from chaosckpt.measure.measurement import Spread
from chaosckpt.measure.storage_use import Peaks, peaks
from chaosckpt.training.metered import (
    Counters,
    Metered,
    MeteredBacklog,
    MeteredRecovery,
    MeteredSave,
    OutstandingSaves,
    StageTook,
    TierSize,
)
from tests.training.metering import Clock, Costs, Known, meter_of

NO_PEAKS = Peaks(temporary_bytes=0, shared_memory_bytes=0, looks=2, saves=1)


def metered(root: Path, costs: Costs, *, saves: int = 4, rank: int = 0, asynchronous: bool = True) -> Metered:
    """A rank that saves with no training beside it, then with it, then in a pile."""
    meter = meter_of(Known(Clock(), root, costs), step_seconds=0.5)
    warm_up = tuple(meter.saves(1))
    taken = tuple(meter.saves(saves, 2))
    steps = tuple(meter.step_seconds)
    completion = costs.completion_seconds
    return Metered(
        rank=rank,
        logical_bytes=900,
        own_logical_bytes=50,
        warm_up=warm_up,
        saves=taken,
        step_seconds=steps,
        overlaps=(meter.overlap(completion),) if asynchronous else (),
        backlog=meter.backlog(completion, bound=1, saves=4) if asynchronous else None,
        retained=2,
    )


def test_figures_of_a_rank_are_exact(tmp_path: Path):
    """Stall, delay, bytes, operations and rates of a target of known costs."""
    found = figures.rank_figures(metered(tmp_path, Costs(stall_seconds=0.5, completion_seconds=4.0, copies=3)))
    assert found.stall_seconds == Spread((0.5,) * 4)
    assert found.completion_seconds == Spread((4.0,) * 4)
    assert found.step_seconds.median == 0.5
    # Seen after the first step that ends when it is over.
    assert found.completion_while_training_seconds == Spread((4.0,))
    assert found.step_seconds_during_save == Spread((0.5,) * 7)
    assert found.waited_seconds == Spread((0.0, 1.5, 1.5, 1.5))
    assert found.written_chars == found.written_bytes == Spread((3000.0,) * 4)
    assert found.write_operations == Spread((3.0,) * 4)
    assert found.bytes_per_second == Spread((750.0,) * 4)
    assert found.seconds_per_operation == Spread((4.0 / 3,) * 4)
    assert found.read_chars is None


def test_stages_have_a_spread_over_the_saves_that_had_them(tmp_path: Path):
    """The last stage only some saves have."""
    rank = metered(tmp_path, Costs(completion_seconds=1.0), saves=2)
    stages = ((StageTook("persist", 0.75),), (StageTook("persist", 0.5), StageTook("retire", 0.25)))
    saves = tuple(msgspec.structs.replace(save, stages=had) for save, had in zip(rank.saves, stages, strict=True))
    found = figures.rank_figures(msgspec.structs.replace(rank, saves=saves))
    assert found.stage_seconds == {"persist": Spread((0.75, 0.5)), "retire": Spread((0.25,))}


def test_capacity_is_exact(tmp_path: Path):
    """Write amplification of three, one generation's size, what is retained, staging memory and a leak of memory."""
    costs = Costs(kept_bytes=1000, copies=3, staged_bytes=400, grown_bytes=25)
    found = figures.capacity([metered(tmp_path, costs)], NO_PEAKS, free_bytes=10**9)
    assert found.written_bytes == 3000
    assert found.apparent_bytes == 1000
    assert found.logical_bytes == 950
    assert (found.retained_generations, found.retires) == (2, True)
    # Over what training took before the first of five saves.
    assert found.staging_bytes == 400 + 5 * 25
    assert found.leaked_bytes == 4 * 25


def test_a_leak_of_storage_is_exact(tmp_path: Path):
    """What each save leaves behind is told to the byte, and nothing where nothing is left."""
    (tmp_path / "lost").mkdir()
    (tmp_path / "tidy").mkdir()
    assert figures.storage_growth([metered(tmp_path / "lost", Costs(lost_bytes=11))]) == 11
    assert figures.storage_growth([metered(tmp_path / "tidy", Costs())]) == 0


def test_a_target_that_retires_nothing(tmp_path: Path):
    """As long as every save is kept, neither a leak nor a bound of what is retained can be told."""
    rank = msgspec.structs.replace(metered(tmp_path, Costs(keep=100), asynchronous=False), retained=5)
    assert figures.storage_growth([rank]) is None
    assert figures.capacity([rank], NO_PEAKS, None).retires is False


def test_a_target_without_a_list(tmp_path: Path):
    """Its generations are told from what lay there at the end, and a leak can't be told from them."""
    rank = metered(tmp_path, Costs(keep=3), asynchronous=False)
    unlisted = [msgspec.structs.replace(save, retained=None) for save in rank.saves]
    size = TierSize(tier="shared", files=3, apparent_bytes=3000, allocated_bytes=12288)
    rank = msgspec.structs.replace(rank, saves=tuple(unlisted), retained=None, final=(size,))
    found = figures.capacity([rank], NO_PEAKS, None)
    assert (found.retained_generations, found.retires) == (3, True)
    assert figures.storage_growth([rank]) is None


def test_spans_count_from_the_first_save(tmp_path: Path):
    """Start, return and observed completion of each save beside training, by one clock for all ranks."""
    rank = metered(tmp_path, Costs(stall_seconds=0.5, completion_seconds=2.25))
    later = msgspec.structs.replace(rank.overlaps[0], began_seconds=rank.overlaps[0].began_seconds + 10.0)
    other = msgspec.structs.replace(rank, rank=1, overlaps=(later,))
    found = figures.spans([other, rank])
    times = [(span.rank, span.started_seconds, span.returned_seconds, span.observed_seconds) for span in found]
    assert times == [(0, 0.0, 0.5, 2.5), (1, 10.0, 10.5, 12.5)]
    assert figures.spans([msgspec.structs.replace(rank, overlaps=())]) == ()


def test_what_is_written_where_storage_counts_nothing(tmp_path: Path):
    """tmpfs and object stores count no bytes as written; then what was asked of write calls is told."""
    rank = metered(tmp_path, Costs(copies=2))

    def written(counted: int) -> int:
        """With so many bytes counted by the kernel for each save."""
        warm_up, saves = (
            tuple(
                msgspec.structs.replace(save, io=msgspec.structs.replace(save.io, write_bytes=counted))
                for save in found
            )
            for found in (rank.warm_up, rank.saves)
        )
        changed = msgspec.structs.replace(rank, warm_up=warm_up, saves=saves)
        return figures.capacity([changed], NO_PEAKS, None).written_bytes

    assert written(8192) == 8192
    assert written(0) == 2000
    # One tier of two counts: less than the files that lie there.
    assert written(999) == 2000


def test_a_backlog_of_two_ranks(tmp_path: Path):
    """The rank that waited longest is shown, and saves that wait don't grow."""
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
    fast = metered(tmp_path / "fast", Costs(completion_seconds=2.0))
    slow = metered(tmp_path / "slow", Costs(completion_seconds=4.0), rank=1)
    found = figures.backlog([fast, slow])
    assert found is not None
    assert found.interval_seconds == 2.0
    assert found.completion_seconds == Spread((4.0,))
    assert found.waited_seconds == Spread((0.0, 2.0, 2.0, 2.0))
    assert found.note == "saves started 4 steps apart"
    assert (found.peak_outstanding, found.grows) == (1, False)
    assert figures.backlog([msgspec.structs.replace(fast, backlog=None)]) is None


def test_a_backlog_that_grows():
    """More and more saves under way is what `grows` tells."""
    save = MeteredSave(
        step=1,
        began_seconds=0.0,
        stall_seconds=0.0,
        completion_seconds=9.0,
        levels=(),
        asynchronous=True,
        io=Counters(),
        resident_before_bytes=0,
        resident_after_bytes=0,
        peak_resident_bytes=0,
    )
    pile = MeteredBacklog(
        steps=1,
        interval_seconds=(1.0,) * 4,
        stall_seconds=(0.0,) * 5,
        waited_seconds=(0.0,) * 5,
        before=(0, 1, 2, 3, 4),
        drained_seconds=9.0,
        timeline=tuple(OutstandingSaves(float(number), number) for number in range(6)),
    )
    found = figures.backlog([Metered(rank=0, saves=(save,), backlog=pile)])
    assert found is not None
    assert found.grows
    assert found.peak_outstanding == 5
    quick = msgspec.structs.replace(save, completion_seconds=0.5)
    found = figures.backlog([Metered(rank=0, saves=(quick,), backlog=pile)])
    assert found is not None
    assert found.note == "saves started 1 step apart, which is not shorter than a save: a step takes longer than a save"


def restarted(rank: int, *totals: float) -> list[Metered]:
    return [
        Metered(
            rank=rank,
            recovery=MeteredRecovery(
                process_start_seconds=total,
                discover_seconds=0.25,
                load_seconds=0.5,
                first_step_seconds=0.125,
                marked=True,
                chosen=4,
                io=Counters(read_chars=77),
            ),
        )
        for total in totals
    ]


def test_a_restart_is_its_slowest_rank():
    """Restart by restart the slowest rank counts, and a total is the sum of its parts."""
    lives = list(zip(restarted(0, 1.0, 4.0), restarted(1, 2.0, 3.0), strict=True))
    found = figures.restart("warm", lives, "")
    assert found.process_start_seconds == Spread((2.0, 4.0))
    assert found.total_seconds == Spread((2.875, 4.875))
    assert found.ranks[1].total_seconds == Spread((2.875, 3.875))


def test_a_point_of_a_sweep_names_the_slowest_rank(tmp_path: Path):
    """Of two ranks the one with the longer completion."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    ranks = [
        metered(tmp_path / "a", Costs(completion_seconds=2.0)),
        metered(tmp_path / "b", Costs(completion_seconds=3.0), rank=1),
    ]
    point = figures.scale_point(ranks, None)
    assert (point.slowest_rank, point.ranks, point.checkpoint_bytes) == (1, 2, 2000)
    assert point.completion_seconds == Spread((3.0,) * 4)


def test_temporary_space_is_what_lies_above_both_ends():
    """A peak of 30 between 10 before and 12 after is 18 for a while; shared memory counts from what there was."""
    found = peaks([10, 25, 30, 12], [5, 9, 5, 5], 2)
    assert (found.temporary_bytes, found.shared_memory_bytes, found.looks, found.saves) == (18, 4, 4, 2)


def test_both_tiers_count():
    """A checkpoint that lies on two tiers takes the space of both."""
    tiers = tuple(
        TierSize(tier=tier, files=1, apparent_bytes=size, allocated_bytes=4096)
        for tier, size in (("local", 10), ("shared", 20))
    )
    save = MeteredSave(
        step=1,
        began_seconds=0.0,
        stall_seconds=0.0,
        completion_seconds=1.0,
        levels=(),
        asynchronous=False,
        io=Counters(),
        resident_before_bytes=0,
        resident_after_bytes=0,
        peak_resident_bytes=0,
        tiers=tiers,
        retained=1,
    )
    found = figures.capacity([Metered(rank=0, saves=(save,))], NO_PEAKS, None)
    assert (found.apparent_bytes, found.allocated_bytes) == (30, 8192)
