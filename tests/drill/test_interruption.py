"""Where a later save is killed: at its edges, in its largest write, and spread in between."""

from __future__ import annotations

import pytest

from chaosckpt.drill.interruption import cuts
from chaosckpt.model.census import Label, Point
from chaosckpt.model.operation import MARK, Address


def points(count: int, op: str = "write", largest: int = 3) -> tuple[Point, ...]:
    return tuple(
        Point(Address(0, "main", op, f"shared:file-{i}", 1, 0), Label("persist", 4), 900 if i == largest else 10)
        for i in range(count)
    )


def places(count: int, wanted: int, **more) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    for cut in cuts(points(count, **more), wanted):
        (trigger,) = cut.at
        found.append((trigger.address.path.partition("-")[2], trigger.when, trigger.torn_bytes))
    return found


def test_six_points_have_the_edges_and_the_largest_write():
    """Before the first operation, around the last one, half of the largest write, and two in between."""
    assert places(10, 6) == [
        ("0", "before", 0),
        ("3", "before", 0),
        ("3", "torn", 450),
        ("6", "before", 0),
        ("9", "before", 0),
        ("9", "after", 0),
    ]


@pytest.mark.parametrize("wanted", [1, 2, 3, 4, 50])
def test_never_more_than_asked_and_never_twice(wanted):
    """A kill is planned once, whatever is asked for."""
    found = places(5, wanted)
    assert len(found) == len(set(found)) <= wanted
    assert found[0] == ("0", "before", 0)


def test_a_save_of_one_operation_is_killed_before_and_after_it():
    """There is nothing in between."""
    assert places(1, 6, largest=9, op="rename") == [("0", "before", 0), ("0", "after", 0)]


def test_stage_boundaries_are_killed_before():
    """A report of a rank has no after."""
    assert {when for _, when, _ in places(5, 6, op=MARK)} == {"before"}


def test_a_save_without_operations_has_no_points():
    """Nothing is killed where nothing can be."""
    assert cuts((), 6) == ()
