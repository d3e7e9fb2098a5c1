"""Contention is told from those saves of neighbours that ran beside the job's own, rank by rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.measure.job import open_job
from chaosckpt.measure.measurement import Spread
from chaosckpt.measure.neighbours import Neighbour, compared, completions
from chaosckpt.measure.sweep import SweepPoint
from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.model.topology import Topology
from chaosckpt.training.metered import Counters, Metered, MeteredSave
from tests.engine.case import scenario_of


def save(began: float, completion: float) -> MeteredSave:
    return MeteredSave(
        step=1,
        began_seconds=began,
        stall_seconds=0.0,
        completion_seconds=completion,
        levels=(),
        asynchronous=False,
        io=Counters(),
        resident_before_bytes=0,
        resident_after_bytes=0,
        peak_resident_bytes=0,
    )


def test_ratios_of_medians():
    """The job takes 3 s in place of 2 s, its neighbour 5 s in place of 2.5 s; what lies before or after doesn't count."""
    told = [
        Metered(rank=0, saves=(save(100.0, 3.0), save(110.0, 2.5))),
        Metered(rank=1, saves=(save(100.0, 2.0), save(110.0, 3.0))),
    ]
    neighbour = [
        [save(10.0, 50.0), save(98.0, 4.0), save(105.0, 5.0), save(111.0, 4.0), save(113.5, 77.0)],
        [save(10.0, 50.0), save(98.0, 5.0), save(105.0, 5.0), save(111.0, 5.0), save(113.5, 77.0)],
    ]
    found = compared(told, [neighbour], alone=Spread((2.0, 2.0, 9.0)), their_own=[2.5])
    assert found.neighbours == 1
    assert found.completion_seconds == Spread((3.0, 3.0))
    assert found.alone_seconds == Spread((2.0, 2.0, 9.0))
    assert found.ratio == 1.5
    assert found.neighbour_ratio == 2.0


def test_a_neighbour_that_did_not_save_meanwhile():
    """Its slowdown isn't known then, and isn't made up."""
    found = compared([Metered(rank=0, saves=(save(100.0, 1.0),))], [[[save(0.0, 1.0)]]], Spread((1.0,)), [1.0])
    assert found.neighbour_ratio is None
    assert found.ratio == 1.0


def test_several_neighbours_have_one_median():
    """Of two neighbours' ratios the middle."""
    told = [Metered(rank=0, saves=(save(100.0, 4.0),))]
    found = compared(told, [[[save(101.0, 2.0)]], [[save(101.0, 4.0)]]], Spread((1.0,)), [1.0, 1.0])
    assert (found.neighbours, found.ratio, found.neighbour_ratio) == (2, 4.0, 3.0)


def test_a_save_is_as_slow_as_its_slowest_rank():
    """Save by save."""
    assert completions([[save(0, 1.0), save(0, 4.0)], [save(0, 2.0), save(0, 3.0)]]) == Spread((2.0, 4.0))


def test_a_neighbour_that_fails_is_told():
    """A job that can save once and never again ends by itself: that is a sentence, not a figure."""
    target = f"{Path(__file__).with_name('saves_once.py')}:SavesOnce"
    with open_job(scenario_of(target, ((1,),)), restarts=False) as job:
        job.begin(WorkloadSettings())
        neighbour = Neighbour(job, SweepPoint(Topology((1,)), WorkloadSettings()))
        neighbour.begin()
        assert [save.step for save in neighbour.saves[0]][:1] == [2]
        neighbour.join()
        with pytest.raises(UsageError, match=r"a neighbour's job failed in save on rank 0: OSError: .*No space left"):
            neighbour.end()


def test_neighbours_end_when_they_are_told():
    """Its ranks are killed in the midst of saving, and what they had saved until then is there."""
    with open_job(scenario_of("torch-save-atomic", ((1,),)), restarts=False) as job:
        job.begin(WorkloadSettings())
        neighbour = Neighbour(job, SweepPoint(Topology((1,)), WorkloadSettings()))
        neighbour.begin()
        neighbour.end()
        steps = [save.step for save in neighbour.saves[0]]
        assert steps == list(range(2, 2 + len(steps)))
