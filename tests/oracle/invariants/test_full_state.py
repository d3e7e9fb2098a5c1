from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted
from tests.oracle.states import state

AS_BUILT = {
    "optimizer": {},
    "optimizer_scalars": {"0.lr": "float:0.5"},
    "scheduler": {"last_epoch": "int:0", "T_max": "int:60"},
    "rng": {"torch": "seed", "python": "seed", "numpy": "seed"},
    "sampler": {"position": "int:0", "dataset": "int:64", "seed": "int:0"},
    "step": 0,
}
NAMES = {"optimizer_scalars": "optimizer-settings"}


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("part", AS_BUILT)
def test_component_that_was_not_restored(part: str, sharded: bool) -> None:
    """A component left as it was built beside restored parameters is named."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, **{part: AS_BUILT[part]})

    journal = interrupted(sharded=sharded).recovers(2, but=change).ends_well().journal()
    primary = check(SCENARIO, journal).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("full-state", "lost-" + NAMES.get(part, part))
    assert "step 2 saved in attempt 0" in primary.sentence


def test_random_streams_of_rank_0_on_every_rank() -> None:
    """A rank that was given rank 0's streams is told so."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, rng=state(2, 0).rng)

    primary = check(SCENARIO, interrupted().recovers(2, but=change).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.rank) == ("full-state", 1)
    assert "it equals that of rank 0" in primary.sentence


def test_optimizer_lost_by_a_change_of_world() -> None:
    """The optimizer is compared in another world, too."""
    trial = TargetJournal(faults=[["cut"]], sharded=True).attempt().recovers(None).saves(2).cut()

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, optimizer={})

    primary = check(SCENARIO, trial.attempt((1,), closing=True).recovers(2, but=change).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("full-state", "lost-optimizer")


def _moved(ranks: tuple[int, ...], *, first: tuple[int, ...] = (1, 1), **more: bool) -> TargetJournal:
    """Attempt 0 saved step 2; the closing attempt is launched with other ranks."""
    trial = TargetJournal(first, faults=[["cut"]], **more).attempt().recovers(None).saves(2).cut()  # type: ignore[arg-type]
    return trial.attempt(ranks, closing=True)


def _primary(trial: TargetJournal) -> Violation | None:
    verdict = check(SCENARIO, trial.ends_well().journal())
    assert (verdict.outcome == "pass") == (verdict.primary is None), verdict
    return verdict.primary


def derived(digest: StateDigest) -> StateDigest:
    """The rank's streams as seeded anew from rank and step."""
    rng = {name: f"{name}/derived/{digest.rank}/{digest.step}" for name in digest.rng}
    return msgspec.structs.replace(digest, rng=rng)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("ranks", [(2, 1), (1,)])
def test_another_world_with_streams_of_its_own_passes(ranks: tuple[int, ...], sharded: bool) -> None:
    """Streams kept by the ranks that remain, or derived for all of them, are both right where nothing is claimed."""
    assert _primary(_moved(ranks, sharded=sharded).recovers(2)) is None
    assert _primary(_moved(ranks, sharded=sharded).recovers(2, but=derived)) is None


@pytest.mark.parametrize("sharded", [False, True])
def test_added_rank_without_its_data_position(sharded: bool) -> None:
    """The data position is global: an added rank that begins at 0 is found, though all else is right."""

    def change(digest: StateDigest) -> StateDigest:
        return digest if digest.rank < 2 else msgspec.structs.replace(digest, sampler=state(0, 2).sampler)

    primary = _primary(_moved((2, 1), sharded=sharded).recovers(2, but=change))
    assert primary is not None
    assert (primary.invariant, primary.rank, primary.error_type) == ("full-state", 2, "lost-sampler")
    assert "position is int:0, but was int:8 when it was saved" in primary.sentence


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(
    ("stream", "seen", "slug"),
    [
        ("numpy/0/2", "numpy equals that of rank 0", "shared-rng"),
        (
            "numpy/1/0",
            "numpy equals the stream of rank 1 at the start of attempt 0, which was already used",
            "repeated-rng",
        ),
        ("numpy/1/2", "numpy equals that of rank 1", "shared-rng"),
    ],
)
def test_added_rank_with_a_stream_that_is_not_its_own(stream: str, seen: str, slug: str, sharded: bool) -> None:
    """One stream of one added rank that another rank has, or that was used before, is enough."""

    def change(digest: StateDigest) -> StateDigest:
        return digest if digest.rank < 2 else msgspec.structs.replace(digest, rng=digest.rng | {"numpy": stream})

    primary = _primary(_moved((2, 1), sharded=sharded).recovers(2, but=change))
    assert primary is not None
    assert (primary.invariant, primary.rank, primary.error_type) == ("full-state", 2, slug)
    assert seen in primary.sentence
    assert "rank 2, which is new" in primary.sentence


def test_streams_of_a_removed_rank_that_come_back() -> None:
    """2 -> 1 -> 2 ranks: rank 1 may not begin again with the streams that its namesake had two attempts ago."""
    trial = TargetJournal(faults=[["cut"], ["cut"]]).attempt().recovers(None).saves(2).cut()
    trial.attempt((1,)).recovers(2, but=derived).saves(4).cut().attempt((1, 1), closing=True)

    def change(digest: StateDigest) -> StateDigest:
        return digest if digest.rank == 0 else msgspec.structs.replace(digest, rng=state(2, 1).rng)

    primary = _primary(trial.recovers(4, but=change))
    assert primary is not None
    assert (primary.invariant, primary.rank, primary.error_type) == ("full-state", 1, "repeated-rng")
    assert "rank 1 at step 2 saved in attempt 0" in primary.sentence


def test_kept_streams_are_owed_where_they_are_claimed() -> None:
    """With the claim to keep random streams, a rank of both worlds must have its own; an added one need not."""
    assert _primary(_moved((2, 1), keeps_rng=True).recovers(2)) is None
    primary = _primary(_moved((2, 1), keeps_rng=True).recovers(2, but=derived))
    assert primary is not None
    assert (primary.rank, primary.error_type) == (0, "lost-rng")
    assert "which the target promises to keep" in primary.sentence


def test_older_streams_of_the_same_rank() -> None:
    """A rank of both worlds may have its own streams of that very capture, not those of an earlier one."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut().attempt((1,), closing=True)

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, rng=state(2, 0).rng)

    primary = _primary(trial.recovers(4, but=change))
    assert primary is not None
    assert (primary.rank, primary.error_type) == (0, "repeated-rng")


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(("ranks", "rank"), [((2, 2), 2), ((2, 2), 3), ((2, 2), 0), ((1,), 0)])
def test_stream_that_nothing_has_set(ranks: tuple[int, ...], rank: int, sharded: bool) -> None:
    """One stream of one rank, new or not, that is as its process began with it was neither restored nor derived."""

    def change(digest: StateDigest) -> StateDigest:
        built = state(0, rank).rng["python"]
        return (
            derived(digest)
            if digest.rank != rank
            else msgspec.structs.replace(digest, rng=derived(digest).rng | {"python": built})
        )

    primary = _primary(_moved(ranks, sharded=sharded).recovers(2, but=change))
    assert primary is not None
    assert (primary.invariant, primary.rank, primary.error_type) == ("full-state", rank, "unset-rng")
    assert "python is still as the new process began with it" in primary.sentence
