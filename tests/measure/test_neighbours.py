"""Contention is told from those saves of neighbours that ran beside the job's own, rank by rank."""

from __future__ import annotations

from chaosckpt.measure.neighbours import compared, completions
from chaosckpt.model.measurement import Spread
from chaosckpt.model.metered import Counters, Metered, MeteredSave


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
