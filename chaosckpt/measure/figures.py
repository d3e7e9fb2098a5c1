"""From the samples of ranks to figures: one spread for each thing measured, and the space that checkpoints take."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from chaosckpt.measure.measurement import (
    Backlog,
    Capacity,
    OutstandingAt,
    RankFigures,
    RankRestart,
    Restart,
    SaveSpan,
    ScalePoint,
    Spread,
    StorageLatency,
    slowest,
)
from chaosckpt.measure.storage_use import Peaks
from chaosckpt.model.phrasing import plural
from chaosckpt.training.metered import Metered, MeteredRecovery, MeteredSave

NO_TIME = 1e-9
"""In place of a duration that the clock couldn't tell from none, where it is divided by."""


def rank_figures(metered: Metered, recoveries: Sequence[MeteredRecovery] = ()) -> RankFigures:
    """What saves, and restarts, cost one rank."""
    saves = metered.saves
    beside = [seconds for overlap in metered.overlaps for seconds in overlap.step_seconds]
    return RankFigures(
        rank=metered.rank,
        stall_seconds=_spread(save.stall_seconds for save in saves),
        completion_seconds=_spread(save.completion_seconds for save in saves),
        stage_seconds=_stages(saves),
        completion_while_training_seconds=_maybe(overlap.completion_seconds for overlap in metered.overlaps),
        step_seconds=Spread(metered.step_seconds),
        step_seconds_during_save=_maybe(beside),
        waited_seconds=_maybe(metered.backlog.waited_seconds if metered.backlog else ()),
        written_bytes=_spread(save.io.write_bytes for save in saves),
        written_chars=_spread(save.io.write_chars for save in saves),
        write_operations=_spread(save.io.write_operations for save in saves),
        read_bytes=_maybe(recovery.io.read_bytes for recovery in recoveries),
        read_chars=_maybe(recovery.io.read_chars for recovery in recoveries),
        read_operations=_maybe(recovery.io.read_operations for recovery in recoveries),
        peak_rss_bytes=max(save.peak_resident_bytes for save in saves),
        bytes_per_second=_spread(save.io.write_chars / (save.completion_seconds or NO_TIME) for save in saves),
        seconds_per_operation=_spread(save.completion_seconds / max(1, save.io.write_operations) for save in saves),
    )


def spans(ranks: Sequence[Metered]) -> tuple[SaveSpan, ...]:
    """When each save beside training began and was seen complete, by the clock that the ranks of a machine share."""
    found = [(overlap.began_seconds, metered.rank, overlap) for metered in ranks for overlap in metered.overlaps]
    origin = min((began for began, _, _ in found), default=0.0)
    return tuple(
        SaveSpan(
            rank=rank,
            started_seconds=began - origin,
            returned_seconds=began - origin + overlap.stall_seconds,
            observed_seconds=began - origin + overlap.completion_seconds,
        )
        for began, rank, overlap in sorted(found, key=lambda entry: entry[:2])
    )


def backlog(ranks: Sequence[Metered]) -> Backlog | None:
    """The pile of saves on the rank that waited longest; None where saves are finished when they return."""
    piled = [metered for metered in ranks if metered.backlog is not None]
    if not piled:
        return None
    worst = max(piled, key=lambda metered: sum(metered.backlog.waited_seconds) if metered.backlog else 0.0)
    found = worst.backlog
    assert found is not None
    completion = slowest(
        _spread(overlap.completion_seconds for overlap in metered.overlaps or metered.saves) for metered in piled
    )
    interval = statistics.median(found.interval_seconds)
    half = found.before[len(found.before) // 2]
    note = f"saves started {plural(found.steps, 'step')} apart"
    if interval >= completion.median:
        longer = (
            "a step takes longer than a save" if found.steps == 1 else "saves finished sooner than the earlier ones"
        )
        note += f", which is not shorter than a save: {longer}"
    return Backlog(
        interval_seconds=interval,
        completion_seconds=completion,
        peak_outstanding=max(
            at.saves for metered in piled if metered.backlog is not None for at in metered.backlog.timeline
        ),
        waited_seconds=Spread(found.waited_seconds),
        timeline=tuple(OutstandingAt(seconds=at.seconds, saves=at.saves) for at in found.timeline),
        grows=found.before[-1] > half > found.before[0],
        note=note,
    )


def _stages(saves: Sequence[MeteredSave]) -> dict[str, Spread]:
    """Of those saves that had the stage: not every save retires another one."""
    found: dict[str, list[float]] = {}
    for save in saves:
        for took in save.stages:
            found.setdefault(took.stage, []).append(took.seconds)
    return {stage: _spread(seconds) for stage, seconds in found.items()}


def restart(cache: str, lives: Sequence[Sequence[Metered]], note: str) -> Restart:
    """Restarts of the whole job, each given as its ranks' lives."""
    by_rank = {
        metered.rank: [other.recovery for life in lives for other in life if other.rank == metered.rank]
        for metered in lives[0]
    }
    ranks = tuple(_rank_restart(rank, [one for one in found if one is not None]) for rank, found in by_rank.items())
    return Restart(
        cache=cache,  # type: ignore[arg-type]
        process_start_seconds=slowest(rank.process_start_seconds for rank in ranks),
        discover_seconds=slowest(rank.discover_seconds for rank in ranks),
        load_seconds=slowest(rank.load_seconds for rank in ranks),
        first_step_seconds=slowest(rank.first_step_seconds for rank in ranks),
        total_seconds=slowest(rank.total_seconds for rank in ranks),
        ranks=ranks,
        note=note,
    )


def _rank_restart(rank: int, found: Sequence[MeteredRecovery]) -> RankRestart:
    return RankRestart(
        rank=rank,
        process_start_seconds=_spread(one.process_start_seconds for one in found),
        discover_seconds=_spread(one.discover_seconds for one in found),
        load_seconds=_spread(one.load_seconds for one in found),
        first_step_seconds=_spread(one.first_step_seconds for one in found),
        total_seconds=_spread(one.total_seconds for one in found),
    )


def scale_point(ranks: Sequence[Metered], found: Restart | None) -> ScalePoint:
    """One point of a sweep."""
    by_rank = [_spread(save.completion_seconds for save in metered.saves) for metered in ranks]
    return ScalePoint(
        ranks=len(ranks),
        checkpoint_bytes=_one_checkpoint(ranks, "apparent_bytes"),
        stall_seconds=slowest(_spread(save.stall_seconds for save in metered.saves) for metered in ranks),
        completion_seconds=slowest(by_rank),
        restart_seconds=found.total_seconds if found is not None else None,
        slowest_rank=max(range(len(by_rank)), key=lambda rank: by_rank[rank].median),
    )


def _one_checkpoint(ranks: Sequence[Metered], kind: str) -> int:
    """What lay on storage after the first save into empty storage."""
    first = [(metered.warm_up or metered.saves)[0] for metered in ranks]
    return sum(getattr(tier, kind) for save in first for tier in save.tiers)


def capacity(ranks: Sequence[Metered], peaks: Peaks, free_bytes: int | None) -> Capacity:
    """The space of one checkpoint, of what is retained, and of what is there for a while only."""
    all_saves = [(*metered.warm_up, *metered.saves) for metered in ranks]
    written = "write_bytes" if counts_written_bytes(ranks) else "write_chars"
    per_save = [
        sum(getattr(save.io, written) for save in together) for together in zip(*(m.saves for m in ranks), strict=True)
    ]
    retained = generations(ranks)
    saved = (
        len(all_saves[0])
        + sum(len(m.overlaps) for m in ranks[:1])
        + sum(len(m.backlog.before) for m in ranks[:1] if m.backlog)
    )
    return Capacity(
        logical_bytes=ranks[0].logical_bytes + sum(metered.own_logical_bytes for metered in ranks),
        written_bytes=round(statistics.median(per_save)),
        apparent_bytes=_one_checkpoint(ranks, "apparent_bytes"),
        allocated_bytes=_one_checkpoint(ranks, "allocated_bytes"),
        retained_generations=retained,
        retires=retained < saved,
        peak_temporary_bytes=peaks.temporary_bytes,
        peak_rss_bytes=max(save.peak_resident_bytes for saves in all_saves for save in saves),
        staging_bytes=max(_staging(saves) for saves in all_saves),
        peak_shm_bytes=peaks.shared_memory_bytes,
        leaked_bytes=max(memory_growth(metered) for metered in ranks),
        free_bytes=free_bytes,
    )


def _staging(saves: Sequence[MeteredSave]) -> int:
    """By how much memory rose over what training took before the first save; later ones may find theirs still at hand."""
    return max(0, max(save.peak_resident_bytes for save in saves) - saves[0].resident_before_bytes)


def listed(ranks: Sequence[Metered]) -> int | None:
    """How many checkpoints the target listed once it was closed; None where it offers no list."""
    return next((metered.retained for metered in ranks if metered.retained is not None), None)


def generations(ranks: Sequence[Metered]) -> int:
    """Checkpoints that lay there at the end: as the target lists them, else as many as what lay there is the size of."""
    found = listed(ranks)
    if found is not None:
        return found
    lay = sum(tier.apparent_bytes for metered in ranks for tier in metered.final)
    return max(1, round(lay / max(1, _one_checkpoint(ranks, "apparent_bytes"))))


def counts_written_bytes(ranks: Sequence[Metered]) -> bool:
    """Whether the kernel counts all that saves hand to storage; it doesn't for tmpfs, nor for what goes over a socket.

    It is told from the first save, which can't have written less than what then lay there.
    """
    first = sum((metered.warm_up or metered.saves)[0].io.write_bytes for metered in ranks)
    return 0 < first >= _one_checkpoint(ranks, "apparent_bytes")


def memory_growth(metered: Metered) -> int:
    """By how much a rank's memory has grown from the first save that counts to after the last one; never below zero."""
    return max(0, metered.saves[-1].resident_after_bytes - metered.saves[0].resident_before_bytes)


def storage_growth(ranks: Sequence[Metered]) -> int | None:
    """Bytes by which storage grows with each save while the number of checkpoints stays the same: what saves leave behind.

    None where that can't be told: the target lists no checkpoints, or retires none.
    """
    saves = [(*metered.warm_up, *metered.saves) for metered in ranks]
    looks = [_look(together) for together in zip(*saves, strict=True)]
    settled = [size for generations, size in looks if generations is not None and generations == looks[-1][0]]
    if len(settled) < 2:
        return None
    return round((settled[-1] - settled[0]) / (len(settled) - 1))


def _look(together: Sequence[MeteredSave]) -> tuple[int | None, int]:
    """Checkpoints and bytes on storage after one save of all ranks."""
    return together[0].retained, sum(tier.apparent_bytes for save in together for tier in save.tiers)


def latencies(ranks: Sequence[Metered]) -> tuple[StorageLatency, ...]:
    """Single operations, by rank and tier."""
    return tuple(
        StorageLatency(
            rank=metered.rank,
            tier=found.tier,
            write_seconds=Spread(found.write_seconds),
            fsync_seconds=Spread(found.fsync_seconds),
            rename_seconds=Spread(found.rename_seconds),
            stat_seconds=Spread(found.stat_seconds),
        )
        for metered in ranks
        for found in metered.latencies
    )


def _spread(samples: Iterable[float]) -> Spread:
    return Spread(tuple(float(sample) for sample in samples))


def _maybe(samples: Iterable[float]) -> Spread | None:
    found = tuple(float(sample) for sample in samples)
    return Spread(found) if found else None
