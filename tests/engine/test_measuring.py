"""Measuring lives of real ranks: counts are exact, times are there, and nothing is measured under a filter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaosckpt.engine.rank.instruments import seccomp
from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.measure.job import MeasuredJob, open_job
from chaosckpt.measure.sweep import checkpoint_bytes
from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.model.topology import Topology
from tests.engine.case import Case, scenario_of

TWO = Topology((1, 1))
RANDOM_STREAMS = 5056 + 8 * 628 + 8 * 627 + 8 * 4
"""Bytes of the tensors that are a rank's own."""


@pytest.fixture(scope="module")
def atomic() -> Iterator[MeasuredJob]:
    with open_job(scenario_of("torch-save-atomic"), restarts=False) as job:
        yield job


@pytest.fixture(scope="module")
def background() -> Iterator[MeasuredJob]:
    with open_job(scenario_of("dcp-async"), restarts=False) as job:
        yield job


def sizes(job: MeasuredJob) -> dict[str, int]:
    """Bytes of all files by tier, by a walk of this test's own."""
    found: dict[str, int] = {}
    for tier, directory in job.directories(TWO):
        paths = [Path(base) / name for base, _, names in os.walk(directory) for name in names]
        found[tier] = found.get(tier, 0) + sum(path.stat().st_size for path in paths)
    return found


def test_counts_of_saves_are_exact(atomic: MeasuredJob):
    """As many samples as were ordered, logical bytes as the workload says, sizes as they lie on disk, two kept of five."""
    atomic.begin(WorkloadSettings())
    order = MeasuringProgram(
        kind="saves", warm_up=2, repeats=3, steps=2, probe_directories=atomic.probe_directories(TWO)
    )
    ranks = atomic.run(TWO, order, "the saves")
    assert [metered.rank for metered in ranks] == [0, 1]
    for metered in ranks:
        assert (len(metered.warm_up), len(metered.saves), len(metered.step_seconds)) == (2, 3, 10)
        assert [save.step for save in (*metered.warm_up, *metered.saves)] == [3, 5, 7, 9, 11]
        assert [save.retained for save in (*metered.warm_up, *metered.saves)] == [1, 2, 2, 2, 2]
        assert metered.logical_bytes == checkpoint_bytes(WorkloadSettings())
        assert metered.own_logical_bytes == RANDOM_STREAMS
        assert metered.retained == 2
        assert not any(save.asynchronous for save in metered.saves)
        stages = ["snapshot", "persist", "commit"] + (["retire"] if metered.rank == 0 else [])
        assert [took.stage for took in metered.saves[-1].stages] == stages
        assert metered.overlaps == ()
        assert metered.backlog is None
        assert {found.tier for found in metered.latencies} == {"local", "shared"}
        assert metered.seccomp.filters == seccomp().filters
    assert sum(tier.apparent_bytes for metered in ranks for tier in metered.final) == sizes(atomic)["shared"]
    one, two = (ranks[0].warm_up[0], ranks[0].warm_up[1])
    assert [tier.tier for tier in two.tiers] == ["local", "shared"]
    assert [tier.tier for tier in ranks[1].final] == ["local"]
    assert two.tiers[1].apparent_bytes == 2 * one.tiers[1].apparent_bytes
    # What rank 0 asked write calls for includes its file of the checkpoint, which is larger than its tensors.
    assert all(save.io.write_chars > metered.own_logical_bytes for metered in ranks for save in metered.saves)
    assert not list(atomic.arena.directory.glob("probe/*"))


def test_asynchronous_saves_are_measured_beside_training(background: MeasuredJob):
    """Each has steps beside it, a timeline of what is under way that ends with none, and no more than one at once."""
    background.begin(WorkloadSettings())
    ranks = background.run(TWO, MeasuringProgram(kind="saves", repeats=2, steps=1), "the saves")
    for metered in ranks:
        assert any(save.asynchronous for save in metered.saves)
        assert len(metered.overlaps) == 2
        assert all(overlap.tells for overlap in metered.overlaps)
        assert metered.backlog is not None
        assert len(metered.backlog.waited_seconds) == len(metered.backlog.before) == 6
        assert len(metered.backlog.interval_seconds) == 5
        assert max(at.saves for at in metered.backlog.timeline) <= 1
        assert metered.backlog.timeline[-1].saves == 0
    steps = {len(overlap.step_seconds) for overlap in (metered.overlaps[0] for metered in ranks)}
    assert len(steps) == 1, "ranks step together"


def test_plain_saves_have_nothing_beside_them(background: MeasuredJob):
    """The saves whose space is watched, and those beside neighbours."""
    background.begin(WorkloadSettings())
    ranks = background.run(TWO, MeasuringProgram(kind="plain", repeats=1), "the saves")
    assert all(metered.overlaps == () and metered.backlog is None for metered in ranks)


def test_a_restart_has_its_parts(atomic: MeasuredJob):
    """It loads the last save, in the stages that the target marks, and trains one step."""
    atomic.begin(WorkloadSettings())
    atomic.run(TWO, MeasuringProgram(kind="plain", repeats=2, steps=2), "the saves")
    for metered in atomic.run(TWO, MeasuringProgram(kind="restart"), "the restart"):
        recovery = metered.recovery
        assert recovery is not None
        assert recovery.chosen == 5
        assert recovery.marked
        parts = (
            recovery.process_start_seconds,
            recovery.discover_seconds,
            recovery.load_seconds,
            recovery.first_step_seconds,
        )
        assert all(part > 0 for part in parts)
        assert recovery.total_seconds == sum(parts)
        assert recovery.io.read_chars > RANDOM_STREAMS


def test_a_restart_of_nothing_is_told(atomic: MeasuredJob):
    """A job that is told to resume and finds nothing raises, and that is the sentence."""
    atomic.begin(WorkloadSettings())
    atomic.run(TWO, MeasuringProgram(kind="plain", repeats=1), "the saves")
    atomic.arena.reset()
    with pytest.raises(
        UsageError, match=r"the restart failed in recover on rank \d: CheckpointError: there is no complete"
    ):
        atomic.run(TWO, MeasuringProgram(kind="restart"), "the restart")


def test_nothing_is_measured_under_the_gate(dcp: Case):
    """Ranks of an arena with a gate see its filter on themselves, and the measurement ends there."""
    job = MeasuredJob(dcp.scenario, dcp.arena, None)
    dcp.arena.reset()
    with pytest.raises(HarnessError, match=r"rank \d runs under \d system call filters? of its own"):
        job.run(TWO, MeasuringProgram(kind="plain", repeats=1), "the saves")
