"""The meter is exact: with a clock of its own, every known cost of a target comes out to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from chaosckpt.training.loop import train_step
from chaosckpt.training.meter import Meter, logical_bytes
from chaosckpt.training.metered import LevelAt, OutstandingSaves
from tests.training.metering import Acknowledged, Clock, Costs, Known, Saving, finished, meter_of, small_job


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_stall_and_completion_are_exact(clock, tmp_path: Path):
    """A stall of 0.5 s and a completion after 2.25 s are measured as that, save by save, and a step as what it takes."""
    meter = meter_of(Known(clock, tmp_path, Costs(stall_seconds=0.5, completion_seconds=2.25)), step_seconds=0.125)
    saves = list(meter.saves(3, steps=2))
    assert [save.stall_seconds for save in saves] == [0.5] * 3
    assert [save.completion_seconds for save in saves] == [2.25] * 3
    assert [save.levels for save in saves] == [(LevelAt("shared", 2.25),)] * 3
    assert all(save.asynchronous for save in saves)
    assert meter.step_seconds == [0.125] * 6
    assert [save.step for save in saves] == [2, 4, 6]


def test_a_save_that_is_finished_when_it_returns(clock, tmp_path: Path):
    """Completion equals the stall, and the save isn't called asynchronous."""
    meter = meter_of(Known(clock, tmp_path, Costs(stall_seconds=1.5)), step_seconds=0.125)
    (save,) = meter.saves(1)
    assert (save.stall_seconds, save.completion_seconds, save.asynchronous) == (1.5, 1.5, False)


def test_each_level_has_its_time(clock, tmp_path: Path):
    """A save acknowledged by a near tier first is complete when the slower one holds it."""

    class TwoLevels(Known):
        def save(self, state, step):
            slow = Saving(self.clock, self.clock.now + 4.0)
            fast = Saving(self.clock, self.clock.now + 1.0)
            fast.wait = lambda: (Saving.wait(fast), Acknowledged("local", slow))[1]  # type: ignore[method-assign]
            return fast

    (save,) = meter_of(TwoLevels(clock, tmp_path, Costs()), step_seconds=0.125).saves(1)
    assert save.levels == (LevelAt("local", 1.0), LevelAt("shared", 4.0))
    assert save.completion_seconds == 4.0


def test_stages_are_exact(clock, tmp_path: Path):
    """What lies between marks is the stage's, wherever in the save it is marked; a stage that comes twice is summed."""
    marks: list[tuple[str, float]] = [("discover", 0.0)]

    class Marking(Known):
        def save(self, state, step):
            for stage, seconds in (("snapshot", 0.5), ("persist", 2.0), ("snapshot", 0.25), ("commit", 0.125)):
                marks.append((stage, self.clock.now))
                self.clock.pass_(seconds)
            return Saving(self.clock, self.clock.now + 1.0)

    known = Marking(clock, tmp_path, Costs())
    meter = Meter(small_job(), known, clock=clock, instruments=known, finished=finished, marks=marks)
    for save in meter.saves(2):
        stages = [(took.stage, took.seconds) for took in save.stages]
        assert stages == [("snapshot", 0.75), ("persist", 2.0), ("commit", 1.125)]


def test_write_amplification_is_exact(clock, tmp_path: Path):
    """Three bytes written for each that is kept: the counters say three, the storage one."""
    meter = meter_of(Known(clock, tmp_path, Costs(kept_bytes=700, copies=3)), step_seconds=0.125)
    saves = list(meter.saves(4))
    assert [save.io.write_chars for save in saves] == [2100] * 4
    assert [save.io.write_operations for save in saves] == [3] * 4
    assert [save.tiers[0].apparent_bytes for save in saves] == [700, 1400, 1400, 1400]
    assert [save.retained for save in saves] == [1, 2, 2, 2]


def test_a_leak_is_exact(clock, tmp_path: Path):
    """A file that is left behind by each save shows in the storage, memory that isn't given back in the resident size."""
    meter = meter_of(
        Known(clock, tmp_path, Costs(lost_bytes=11, grown_bytes=300, staged_bytes=5000)), step_seconds=0.125
    )
    saves = list(meter.saves(4))
    assert [save.tiers[0].apparent_bytes for save in saves] == [1011, 2022, 2033, 2044]
    assert [save.resident_after_bytes - save.resident_before_bytes for save in saves] == [300] * 4
    assert [save.peak_resident_bytes - save.resident_before_bytes for save in saves] == [5300] * 4


def test_training_beside_a_save(clock, tmp_path: Path):
    """Steps while a save is under way are kept apart, and its completion is seen after the first step that it is over at."""
    meter = meter_of(Known(clock, tmp_path, Costs(stall_seconds=0.5, completion_seconds=2.25)), step_seconds=0.5)
    meter.train(1)
    overlap = meter.overlap(2.25)
    # Steps end 1.0, 1.5, 2.0 and 2.5 s after the beginning: the last one is the first that sees it finished.
    assert (overlap.stall_seconds, overlap.completion_seconds) == (0.5, 2.5)
    assert overlap.step_seconds == (0.5,) * 4
    assert overlap.tells


def test_training_is_slower_beside_a_save(clock, tmp_path: Path):
    """A step that takes twice as long while a save is written is measured so, and those without a save aren't touched."""
    known = Known(clock, tmp_path, Costs(completion_seconds=2.0))
    writing: list[Saving] = []
    save = known.save
    known.save = lambda state, step: writing.append(save(state, step)) or writing[-1]  # type: ignore[method-assign,func-returns-value]

    def train(job):
        job.state.step += 1
        clock.pass_(1.0 if writing and not finished(writing[-1]) else 0.5)

    meter = meter_of(known, 0.5, train)
    meter.train(3)
    assert meter.overlap(2.0).step_seconds == (1.0, 1.0)
    assert meter.step_seconds == [0.5] * 4


def test_a_save_that_cannot_tell(clock, tmp_path: Path):
    """It is awaited after as many steps as it takes alone, and the report says that it doesn't tell."""
    meter = meter_of(Known(clock, tmp_path, Costs(completion_seconds=2.25, tells=False)), step_seconds=0.5)
    meter.train(1)
    overlap = meter.overlap(2.25)
    assert (overlap.completion_seconds, len(overlap.step_seconds), overlap.tells) == (2.5, 5, False)


def test_a_backlog_is_waited_for(clock, tmp_path: Path):
    """Saves of 4 s begun every 2 s, one at a time: each waits 2 s for the one before, and never are two under way."""
    meter = meter_of(Known(clock, tmp_path, Costs(completion_seconds=4.0)), step_seconds=0.5)
    meter.train(1)
    backlog = meter.backlog(4.0, bound=1, saves=4)
    assert (backlog.steps, backlog.interval_seconds) == (4, (2.0,) * 3)
    assert backlog.waited_seconds == (0.0, 2.0, 2.0, 2.0)
    assert backlog.before == (0, 0, 0, 0)
    assert backlog.drained_seconds == 4.0
    assert max(at.saves for at in backlog.timeline) == 1


def test_an_interval_takes_slower_steps_into_account(clock, tmp_path: Path):
    """Where a step beside a save takes twice as long, an interval of half a save has half as many steps; one at least."""
    meter = meter_of(Known(clock, tmp_path, Costs(completion_seconds=4.0)), step_seconds=0.5)
    meter.train(1)
    assert meter.backlog(4.0, bound=1, saves=2, step_seconds=1.0).steps == 2
    assert meter.backlog(0.1, bound=1, saves=2).steps == 1


def test_a_backlog_that_may_grow(clock, tmp_path: Path):
    """With room for eight the saves pile up: two more after each two intervals, and nothing waits."""
    meter = meter_of(Known(clock, tmp_path, Costs(completion_seconds=8.0)), step_seconds=0.5)
    meter.train(1)
    backlog = meter.backlog(8.0, bound=8, saves=4)
    assert backlog.steps == 8
    assert backlog.waited_seconds == (0.0,) * 4
    # A save is begun every 4 s and takes 8 s: from the third on, the one before the last is just over.
    assert backlog.before == (0, 1, 1, 1)
    assert backlog.timeline[:4] == (
        OutstandingSaves(0.5, 0),
        OutstandingSaves(4.0, 1),
        OutstandingSaves(8.0, 2),
        OutstandingSaves(12.0, 1),
    )


def test_the_slowest_rank_decides_when_all_stop(clock, tmp_path: Path):
    """A rank whose own save is over trains on while another's is not: steps are taken together."""
    known = Known(clock, tmp_path, Costs(completion_seconds=1.0))
    asked: list[float] = []

    def agree(value: float) -> float:
        asked.append(value)
        # Of the questions whether to go on, the first three are answered by a rank that isn't finished.
        return max(value, 1.0 if 4 <= len(asked) <= 6 else 0.0)

    def train(job):
        job.state.step += 1
        clock.pass_(0.5)

    meter = Meter(small_job(), known, clock=clock, instruments=known, finished=finished, agree=agree, train=train)
    meter.train(1)
    overlap = meter.overlap(1.0)
    assert overlap.completion_seconds == 1.0
    assert len(overlap.step_seconds) == 3


def test_the_real_training_step_is_the_default(clock, tmp_path: Path):
    """Without a given step the job's own is trained: its state changes."""
    known = Known(clock, tmp_path, Costs())
    job = small_job()
    before = [parameter.clone() for parameter in job.state.model.parameters()]
    list(Meter(job, known, clock=clock, instruments=known, finished=finished).saves(1))
    assert job.state.step == 1
    assert not all(torch.equal(one, other) for one, other in zip(before, job.state.model.parameters(), strict=True))


def test_logical_bytes_count_every_tensor_once():
    """Parameters, two moments and a counter for each, and the rank's own streams and stamp."""
    job = small_job()
    train_step(job)
    shared, own = logical_bytes(job.state)
    parameters = 4 * 4 + 4 + 4 * 4 + 4
    assert shared == 4 * parameters * 3 + 4 * 4
    assert own == 5056 + 8 * 628 + 8 * 627 + 8 * 4
