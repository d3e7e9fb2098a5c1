from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.digest import StateDigest, TensorDigest
from chaosckpt.oracle import check
from tests.oracle.command_journals import SAVED, CommandJournal, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, all_violated, interrupted, passes, violated
from tests.oracle.states import state, tensor

NOISE = TensorDigest(rows=4, total=4, sum="f" * 32)


def _with_param(name: str, value: TensorDigest) -> object:
    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, params={**digest.params, name: value})

    return change


def test_mix_of_two_generations_names_tensors_and_generations() -> None:
    """One parameter of step 4 among those of step 2 is a mix, told with both saves and the tensor's name."""
    journal = interrupted().recovers(2, but=_with_param("0.bias", tensor("0.bias", 4, ""))).ends_well().journal()  # type: ignore[arg-type]
    primary = check(SCENARIO, journal).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("complete-only", "mixed-generations")
    for words in ("0.bias", "step 4 saved in attempt 0", "step 2 saved in attempt 0", "rank 0"):
        assert words in primary.sentence


def test_torn_bytes_equal_nothing_that_was_saved() -> None:
    """A parameter whose bytes were never captured is torn."""
    journal = interrupted().recovers(2, but=_with_param("0.bias", NOISE)).ends_well().journal()  # type: ignore[arg-type]
    primary = check(SCENARIO, journal).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("complete-only", "torn-bytes")
    assert "0.bias" in primary.sentence


def test_state_that_was_not_loaded_at_all_is_found() -> None:
    """A target that says step 2 and leaves the parameters as they were made is caught."""
    primary = check(SCENARIO, interrupted().recovers(2, shown=0).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("complete-only", "unknown-state")


def test_sharded_mix_names_the_rows_of_each_rank() -> None:
    """Shards of two saves in one sharded world are a mix, though each rank's own rows are right for some save."""
    trial = interrupted(sharded=True).recovers(4, ranks=[0]).recovers(4, shown=2, ranks=[1]).ends_well()
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("complete-only", "mixed-generations")
    assert "those of rank 0 are of step 4" in primary.sentence
    assert "those of rank 1 are of step 2" in primary.sentence


@pytest.mark.parametrize(("moments", "kind"), [(("exp_avg",), "full-state"), (("torn",), "complete-only")])
def test_optimizer_torn_or_lost(moments: tuple[str, ...], kind: str) -> None:
    """Some wrong values of one moment are torn bytes; all values of a moment wrong mean that it was not restored."""

    def change(digest: StateDigest) -> StateDigest:
        wrong = [name for name in digest.optimizer if name.endswith(moments)] or ["0.bias/exp_avg"]
        return msgspec.structs.replace(digest, optimizer={**digest.optimizer, **dict.fromkeys(wrong, NOISE)})

    primary = check(SCENARIO, interrupted().recovers(2, but=change).ends_well().journal()).primary
    assert primary is not None
    assert primary.invariant == kind


def _with_parts(*parts: str, of: int) -> object:
    def change(digest: StateDigest) -> StateDigest:
        other = state(of, digest.rank)
        return msgspec.structs.replace(digest, **{part: getattr(other, part) for part in parts})

    return change


SMALL = ["scheduler", "sampler", "optimizer_scalars", "step"]


@pytest.mark.parametrize("part", ["optimizer", "rng"])
def test_component_of_another_save_is_a_mix(part: str) -> None:
    """A whole component of bytes, or of random streams, that equals that of another save makes a mix of generations."""
    journal = interrupted().recovers(2, but=_with_parts(part, of=4)).ends_well().journal()  # type: ignore[arg-type]
    primary = check(SCENARIO, journal).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("complete-only", "mixed-generations")
    assert "step 4 saved in attempt 0" in primary.sentence


@pytest.mark.parametrize("part", SMALL)
def test_counter_that_another_save_has_too_is_no_mix(part: str) -> None:
    """A count or a setting that equals another save's may do so by chance: that it is wrong is all that is known."""
    trial = interrupted().recovers(2, but=_with_parts(part, of=4)).ends_well()  # type: ignore[arg-type]
    assert violated(trial)[0] == "full-state"
    assert "complete-only" not in all_violated(trial)
    primary = trial.verdict().primary
    assert primary is not None
    assert "step 4 saved in attempt 0 has the same value" in primary.sentence


def test_halved_position_that_is_an_earlier_save_s_is_no_mix() -> None:
    """2 -> 1 ranks: 16 / 2 is also the position of step 2, which nobody has loaded."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut().attempt((1,), closing=True)
    trial.recovers(4, but=_with_parts("sampler", of=2)).ends_well()  # type: ignore[arg-type]
    assert violated(trial) == ("full-state", "lost-sampler")
    assert "complete-only" not in all_violated(trial)


@pytest.mark.parametrize("part", SMALL)
def test_counters_that_go_with_bytes_of_another_save_are_its_part(part: str) -> None:
    """Random streams of another save prove that something of it was loaded: then its count is part of the one mix."""
    trial = interrupted().recovers(2, but=_with_parts("rng", part, of=4)).ends_well()  # type: ignore[arg-type]
    assert violated(trial) == ("complete-only", "mixed-generations")
    assert "full-state" not in all_violated(trial)


def test_counters_of_the_step_that_the_state_is_said_to_be_are_its_part() -> None:
    """Parameters of step 4 under the name of step 2, with step 2's counters: a mix, though no bytes are of step 2."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut().attempt(closing=True)
    trial.recovers(2, shown=4, but=_with_parts("scheduler", of=2)).ends_well()  # type: ignore[arg-type]
    assert violated(trial) == ("complete-only", "mixed-generations")


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("ranks", [(1,), (2, 1)])
def test_whole_state_in_another_world_is_recognised(sharded: bool, ranks: tuple[int, ...]) -> None:
    """A resharded state equals its capture; random streams and data position are not compared then."""
    trial = TargetJournal(faults=[["cut"]], sharded=sharded).attempt().recovers(None).saves(2).cut()

    def derived(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, rng={"torch": f"derived/{digest.rank}"}, stamp=(1, -1, digest.rank, 3))

    trial.attempt(ranks, closing=True).recovers(2, but=derived).ends_well()
    verdict = check(SCENARIO, trial.journal())
    assert verdict.outcome == "pass", verdict
    assert {"complete-only", "full-state"} <= set(verdict.judged)


def test_mix_after_a_change_of_world_is_found() -> None:
    """Stale shards reused after a world-size change are a mix also where no rank's rows can be compared by themselves."""
    trial = TargetJournal(faults=[["cut"]], sharded=True).attempt().recovers(None).saves(2).saves(4).cut()
    trial.attempt((2, 1), closing=True).recovers(4, ranks=[0, 1]).recovers(4, shown=2, ranks=[2]).ends_well()
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    assert primary.invariant == "complete-only"


def test_equal_bytes_of_two_attempts_are_no_mix() -> None:
    """Shards of two bitwise equal saves of one step load the right state, whatever their stamps say."""
    trial = (
        TargetJournal(faults=[["cut"], ["cut"]], sharded=True).attempt().recovers(None).saves(2).starts_save(4).cut()
    )
    trial.attempt().recovers(2, attempt=0).starts_save(4).cut()
    trial.attempt(closing=True).recovers(4, attempt=0, ranks=[0]).recovers(4, attempt=1, ranks=[1]).ends_well()
    verdict = check(SCENARIO, trial.journal())
    assert verdict.outcome == "pass", verdict


def test_rank_that_had_not_begun_the_save_can_hold_no_part_of_it() -> None:
    """Rank 1's own part can't be of a save that it never began: an older part beside the newer parameters is a mix."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).starts_save(4, ranks=[0]).cut()

    def stale(digest: StateDigest) -> StateDigest:
        old = state(2, digest.rank)
        return msgspec.structs.replace(digest, rng=old.rng) if digest.rank == 1 else digest

    primary = check(SCENARIO, trial.attempt(closing=True).recovers(4, but=stale).ends_well().journal()).primary
    assert primary is not None
    assert primary.invariant == "complete-only"
    assert "had not started that save" in primary.sentence


def test_nothing_loaded_is_not_judged() -> None:
    """Where no rank loaded anything there is nothing to identify."""
    verdict = check(SCENARIO, TargetJournal().attempt(closing=True).recovers(None).ends_well().journal())
    assert not {"complete-only", "full-state"} & set(verdict.judged)


def test_a_torn_file_is_loaded():
    """C6: written in place, torn by a kill, and taken for whole: the result is another one."""
    trial = killed_in_save_4().attempt(closing=True).says_resumed(4).saves(6).finishes(equal=False)
    assert violated(trial) == ("complete-only", "incomplete-checkpoint")
    assert "result-equal" in all_violated(trial)


def test_a_torn_file_that_was_read_is_told_from_one_that_was_not():
    """Its state may lie in another, whole file, too: what no file of the torn checkpoint was read for is no violation."""
    for read, broken in (((4,), True), ((2, 4), True), ((), False), ((2,), False)):
        trial = killed_in_save_4()
        trial.read = read
        trial.attempt(closing=True).says_resumed(4).saves(6).finishes(equal=None)
        assert ("complete-only" in all_violated(trial)) is broken, read


def test_a_file_that_nothing_needs():
    """Where the job went on from a checkpoint without some file and has the exact result, nothing was lost."""
    trial = CommandJournal(SAVED).attempt().saves(2).tears(4, "out:ckpt-4/README.md").cut()
    passes(trial.attempt(closing=True).says_resumed(4).saves(6).finishes())
