"""Looking up the first steps of a restart among those of the uninterrupted run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chaosckpt.commands.trajectories import BEGINNING, Positions, difference, learn, steady, trajectory
from chaosckpt.model.observed import ObservedStep, decoded

STEPS = 6
PARTS = ("optimizer", "scheduler", "buffers", "averages", "torch-rng", "data", "gradients")
ALL = frozenset({"parameters", *PARTS})


def step(at: int, rank: int = 0, **other: str) -> ObservedStep:
    """Training step `at` of the uninterrupted run, from 0, with other parts where told."""
    before = {part: f"{part}-{at}" for part in PARTS} | {"parameters": f"p{at}", "scheduler": f"lr-{at // 2}"}
    return ObservedStep(
        rank=rank,
        before={**before, **{name.replace("_", "-"): digest for name, digest in other.items()}},
        after=f"p{at + 1}",
    )


def run(since: int = 0, ranks: int = 2, changed: Mapping[int, dict[str, str]] | None = None) -> list[ObservedStep]:
    """The steps from `since` on, of all ranks; `changed` are other parts of some of them."""
    return [step(at, rank, **(changed or {}).get(at, {})) for rank in range(ranks) for at in range(since, STEPS)]


GOLDEN = trajectory(run())


def positions() -> Positions:
    found = learn(GOLDEN, {2: trajectory(run(2)), 4: trajectory(run(4))})
    assert isinstance(found, Positions)
    return found


def told(changed: Mapping[int, dict[str, str]], judged: frozenset[str] = ALL) -> tuple[str, int, int | None] | None:
    found = difference(GOLDEN, trajectory(run(2, changed=changed)), 2, 2, judged)
    return None if found is None else (found.part, found.step, found.other)


def test_a_restart_tells_where_it_trains_on_from() -> None:
    """Goal: the step is known, rank by rank, from what the ranks hold, whatever they print."""
    known = positions()
    assert known.steps == {2: 2, 4: 4}
    assert known.resumed(run(4)) == {0: 4, 1: 4}
    assert known.resumed(run()) == {0: BEGINNING, 1: BEGINNING}
    assert known.resumed(run(3)) == {0: None, 1: None}, "no save stands there"
    assert known.resumed([step(2, 0), step(4, 1)]) == {0: 2, 1: 4}, "ranks that disagree"
    assert known.resumed([step(2, 0, parameters="other")]) == {0: None}
    assert known.resumed([]) == {}


def test_steps_that_change_nothing_do_not_count() -> None:
    """Goal: DCP makes an optimizer's state by a step with a learning rate of 0 before it loads."""
    phantom = ObservedStep(rank=0, before={"parameters": "p0"}, after="p0")
    assert positions().resumed([phantom, step(4)]) == {0: 4}


@pytest.mark.parametrize(
    ("restarts", "why"),
    [
        ({2: run(), 4: run()}, "seems to begin with training step 1"),
        ({2: run(4), 4: run(4)}, "seems to begin with training step 5"),
        ({2: [step(0, 0, parameters="new"), step(0, 1, parameters="new")]}, "parameters of no step"),
        ({2: [*run(2, 1), step(4, 1)]}, "parameters of no step"),
        ({6: []}, "no plain restart trained on"),
    ],
)
def test_what_does_not_fit_is_unknown(restarts: Mapping[int, list[ObservedStep]], why: str) -> None:
    """Goal: a script that makes a step before it loads, one that never resumes: nothing is claimed of them."""
    found = learn(GOLDEN, {step: trajectory(seen) for step, seen in restarts.items()})
    assert isinstance(found, str)
    assert why in found


def test_parameters_that_come_twice_tell_no_place() -> None:
    """Goal: no step is claimed that could be another one."""
    golden = trajectory([step(0), step(1), step(2, parameters="p1"), step(3)])
    found = learn(golden, {1: trajectory([step(1)])})
    assert isinstance(found, str)


@pytest.mark.parametrize("part", ["optimizer", "scheduler", "buffers", "averages", "data"])
def test_a_part_that_was_not_restored_is_named(part: str) -> None:
    """Goal: with the training step that shows it, and the step whose part it is, where that is one."""
    assert told({2: {part: f"{part}-0" if part != "scheduler" else "lr-5"}}) == (
        part,
        3,
        0 if part != "scheduler" else None,
    )


def test_what_shows_a_step_later() -> None:
    """Goal: a scheduler shows in the second step's learning rate; an optimizer without a state in what its first step makes."""
    assert told({3: {"scheduler": "lr-9"}}) == ("scheduler", 4, None)
    assert told({2: {"optimizer": ""}, 3: {"parameters": "other", "optimizer": ""}}) == ("optimizer", 4, None)
    assert told({2: {"optimizer": "", "scheduler": "lr-0"}}) == ("optimizer", 3, None), "made anew, with its settings"


def test_random_numbers_are_named_where_they_matter() -> None:
    """Goal: another state of a generator that changes no gradient is nothing; gradients that differ alone are numerics."""
    assert told({2: {"torch_rng": "other", "gradients": "other"}}) == ("rng", 3, None)
    assert told({2: {"torch_rng": "other"}}) is None
    assert told({2: {"gradients": "other"}, 3: {"parameters": "other", "gradients": "other"}}) is None, (
        "DDP on three ranks"
    )


def test_what_is_not_steady_is_not_judged() -> None:
    """Goal: what differs between uninterrupted runs says nothing of a restart."""
    judged = steady([GOLDEN, trajectory(run(changed={1: {"data": "by chance"}}))])
    assert judged == ALL - {"data"}
    assert told({2: {"data": "data-0"}}, judged) is None


def test_what_cannot_be_compared_is_no_difference() -> None:
    """Goal: another number of living things, and batches of steps that a gradient scaler skipped."""
    assert difference(trajectory([step(0, averages="2:a")]), trajectory([step(0, averages="3:b")]), 1, 0, ALL) is None
    golden, skipped = trajectory([step(0, data="b1 b2")]), trajectory([step(0, data="b2")])
    assert difference(golden, skipped, 1, 0, ALL) is None
    assert difference(golden, trajectory([step(0, data="b1")]), 1, 0, ALL) is not None


def test_a_line_that_a_kill_cut_short_is_left_out() -> None:
    """Goal: what was written whole counts."""
    assert decoded(['{"rank": 1, "before": {"parameters": "a"}, "after": "b"}', '{"rank": 1, "bef']) == [
        ObservedStep(rank=1, before={"parameters": "a"}, after="b")
    ]
