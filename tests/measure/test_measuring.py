"""Whole measurements of tiny jobs: every part is there, and what can be counted is exact; no time is asserted."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from chaosckpt.engine.rank.instruments import seccomp
from chaosckpt.measure import measuring
from chaosckpt.measure.failure_rate import counted
from chaosckpt.measure.measurement import Measurement, MeasurementDocument, document
from chaosckpt.measure.sweep import MeasureOptions, checkpoint_bytes, sized
from chaosckpt.model.scenario import StorageSettings, WorkloadSettings
from tests.engine.case import scenario_of

RANDOM_STREAMS = 5056 + 8 * 628 + 8 * 627 + 8 * 4
KEYS = (
    "interval_seconds checkpoint_bytes ranks stall_seconds completion_seconds contention_ratio retained_generations restart_seconds"
).split()


@pytest.fixture(scope="module")
def storage(tmp_path_factory) -> Path:
    directory: Path = tmp_path_factory.mktemp("storage")
    return directory


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


def nodes() -> set[str]:
    """The node processes that this process has started and that live."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {pid for pid in children if b"chaosckpt.engine" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.fixture(scope="module")
def earlier() -> set[str]:
    """The nodes of other tests of this process, before anything is measured."""
    return nodes()


@pytest.fixture(scope="module")
def atomic(earlier: set[str], storage: Path, told: list[str]) -> Measurement:
    """Two sizes, a neighbour, two repeats."""
    scenario = scenario_of("torch-save-atomic", ((1, 1), (1,)))
    scenario = msgspec.structs.replace(scenario, storage=StorageSettings(shared=str(storage), local=str(storage)))
    options = MeasureOptions(
        scenario=scenario,
        sizes=(10_000, 50_000),
        repeats=2,
        failure_rate=counted(3, 86400.0),
        tolerated_loss_seconds=60.0,
    )
    return measuring.measure(options, told.append)


@pytest.fixture(scope="module")
def background(earlier: set[str], storage: Path) -> Measurement:
    """An asynchronous target, sharded, alone."""
    scenario = scenario_of("dcp-async", workload={"strategy": "fsdp2"})
    scenario = msgspec.structs.replace(scenario, storage=StorageSettings(shared=str(storage), local=str(storage)))
    return measuring.measure(MeasureOptions(scenario=scenario, repeats=1, warm_up=0, neighbours=0))


def test_what_was_asked_for_is_there(atomic: Measurement):
    """Ranks, repeats, scale, contention, latencies, restarts and file systems, each as often as it should be."""
    assert (atomic.target, atomic.strategy, atomic.ranks, atomic.repeats) == ("torch-save-atomic", "ddp", 2, 2)
    assert [figure.rank for figure in atomic.figures] == [0, 1]
    assert all(len(figure.stall_seconds.samples) == 2 for figure in atomic.figures)
    assert [contention.neighbours for contention in atomic.contention] == [1]
    assert atomic.contention[0].neighbour_ratio is not None
    assert {(latency.rank, latency.tier) for latency in atomic.latencies} == {
        (rank, tier) for rank in (0, 1) for tier in ("local", "shared")
    }
    assert {system.tier for system in atomic.file_systems} == {"local", "shared"}
    assert {"python", "torch", "chaosckpt"} <= set(atomic.versions)


def test_space_is_exact(atomic: Measurement):
    """Logical bytes as the workload has them, one checkpoint's files, two generations kept and the others removed."""
    workload = sized(WorkloadSettings(steps=3, save_every=1), 50_000)
    capacity = atomic.capacity
    assert capacity.logical_bytes == checkpoint_bytes(workload) + 2 * RANDOM_STREAMS
    assert (capacity.retained_generations, capacity.retires) == (2, True)
    assert capacity.logical_bytes < capacity.apparent_bytes < capacity.logical_bytes + 20_000
    assert capacity.allocated_bytes % 512 == 0
    assert 0 <= capacity.peak_temporary_bytes <= capacity.apparent_bytes
    assert not [note for note in atomic.notes if "storage grew" in note]


def test_a_synchronous_save_has_no_backlog(atomic: Measurement):
    """It is said so instead."""
    assert not atomic.asynchronous
    assert atomic.backlog is None
    assert all(figure.step_seconds_during_save is None for figure in atomic.figures)
    assert [note for note in atomic.notes if "no backlog was measured" in note]


def test_the_sweep_has_every_point(atomic: Measurement):
    """Both sizes, ascending, each with a restart and its slowest rank."""
    small, large = atomic.scale
    assert small.checkpoint_bytes < large.checkpoint_bytes == atomic.capacity.apparent_bytes
    assert all(point.restart_seconds is not None and point.slowest_rank in (0, 1) for point in atomic.scale)


def test_restarts_are_whole(atomic: Measurement):
    """Each rank has a share in each restart, and where there is no cold figure the warm one says why."""
    warm, *cold = atomic.restarts
    assert warm.cache == "warm"
    assert [restart.cache for restart in cold] == ["cold"] or warm.note.startswith("no cold figure: ")
    for restart in atomic.restarts:
        assert [rank.rank for rank in restart.ranks] == [0, 1]
        assert len(restart.total_seconds.samples) == 2
        assert "doesn't mark" not in restart.note


def test_no_filter_but_an_inherited_one(atomic: Measurement):
    """Every rank's mode is this process's own."""
    assert atomic.filters == {"0": seccomp().mode, "1": seccomp().mode}
    assert atomic.notes[0].startswith("Nothing ran under the gate")


def test_the_advice_is_from_these_figures(atomic: Measurement):
    """The measured medians, the counted failures and the tolerated loss are its inputs."""
    advice = atomic.advice
    assert advice.failure_rate.failures == 3
    assert advice.mtbf_seconds == 86400.0 / 3
    assert advice.stall_seconds == atomic.stall_seconds.median
    assert advice.tolerated_loss_seconds == 60.0
    assert atomic.restart is not None
    assert advice.restart_seconds == atomic.restart.total_seconds.median


def test_the_failure_boundary_says_what_was_not_tested(atomic: Measurement):
    """Never more than was tested."""
    assert "node-local storage emptied" in atomic.failure_boundary
    assert "No crash, power loss or storage error was tested" in atomic.failure_boundary


def test_the_eight_figures_lead_the_json(atomic: Measurement):
    """One object, whose first keys are they; it can be read back."""
    encoded = msgspec.json.encode(document(atomic))
    assert list(msgspec.json.decode(encoded))[:8] == KEYS
    assert msgspec.json.decode(encoded, type=MeasurementDocument).details == atomic


def test_an_asynchronous_target_is_measured_beside_training(background: Measurement):
    """Completion and steps beside a save, a backlog with its timeline; without a warm-up the first save counts."""
    assert background.asynchronous
    assert (background.warm_up, background.repeats) == (0, 1)
    for figure in background.figures:
        assert figure.completion_while_training_seconds is not None
        assert figure.waited_seconds is not None
    backlog = background.backlog
    assert backlog is not None
    assert backlog.peak_outstanding <= 1
    assert not backlog.grows
    assert backlog.timeline[-1].saves == 0
    assert background.contention == ()
    assert background.scale == ()


def test_a_sharded_state_is_counted_once(background: Measurement):
    """Each rank holds half of the rows; the logical size is that of the whole."""
    workload = WorkloadSettings(steps=3, save_every=1)
    assert background.capacity.logical_bytes == checkpoint_bytes(workload) + 2 * RANDOM_STREAMS


def test_progress_is_told(atomic: Measurement, told: list[str]):
    """In order, so that nobody wonders what takes so long."""
    assert told[0] == "starting the nodes"
    assert told[1].startswith("2 saves after 1 warm-up save, 2 ranks and ")
    assert told[-1] == "saves beside 1 neighbour"


def test_nothing_is_left(earlier: set[str], atomic: Measurement, background: Measurement, storage: Path):
    """Not in the storage directory, and no process whose parent is this one."""
    assert list(storage.iterdir()) == []
    assert nodes() - earlier == set()
