"""What every target owes, in both strategies: everything back, the same in another world where claimed, and clear answers."""

from __future__ import annotations

import pytest

from chaosckpt.model.digest import combine
from chaosckpt.targets import Chosen, Intent, Nothing, Target
from chaosckpt.training.loop import train_step
from tests.targets.target_job import ALL, MyTarget, TargetJob, files_under
from tests.training.ranks import job_of, run_ranks

every_target = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.name or cls.__name__)
every_strategy = pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])


@every_target
@every_strategy
def test_what_was_saved_comes_back_whole(tmp_path, cls, strategy):
    """After a restart in the same world each rank holds bitwise what it held at the save, and trains on to the same losses."""
    target_job = TargetJob(tmp_path, cls, strategy)
    saved = target_job.train()
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]
        assert after.losses == before.losses


@every_target
def test_a_lone_rank_needs_no_process_group(tmp_path, cls):
    """One rank saves and recovers without torch.distributed being initialised."""
    target_job = TargetJob(tmp_path, cls)
    target_job.group = False
    (saved,) = target_job.train(world_size=1)
    (outcome,) = target_job.recover(world_size=1)
    assert (outcome.answer, outcome.digest, outcome.losses) == (Chosen(4), saved.digests[4], saved.losses)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("cls", [cls for cls in ALL if "world-size-change" in cls.guarantees], ids=lambda cls: cls.name)
@every_strategy
def test_another_world_size_gets_the_same_state(tmp_path, cls, strategy, before, after):
    """Parameters, optimizer, scheduler, step and data position survive a changed number of ranks, where the target claims it."""
    target_job = TargetJob(tmp_path, cls, strategy)
    saved = combine([life.digests[4] for life in target_job.train(world_size=before)])
    outcomes = target_job.recover(world_size=after)
    loaded = combine([outcome.digest for outcome in outcomes])
    assert {outcome.answer for outcome in outcomes} == {Chosen(4)}
    assert loaded.shared_parts() == saved.shared_parts()
    assert loaded.samplers == (saved.samplers[0],) * after
    assert loaded.problems == ()


@pytest.mark.parametrize(
    "cls", [cls for cls in ALL if "world-size-change" not in cls.guarantees], ids=lambda cls: cls.__name__
)
def test_another_world_size_is_refused_clearly_where_it_is_not_claimed(tmp_path, cls: type[Target]):
    """A target that can't grow fails on every rank, naming a path, instead of mixing."""
    target_job = TargetJob(tmp_path, cls)
    target_job.train()
    for failure in target_job.recover_outcomes(world_size=3).failures:
        assert str(target_job.shared) in failure.text


@every_target
def test_a_first_launch_starts_from_nothing(tmp_path, cls):
    """Under START an empty storage means Nothing, on every rank, and the state is untouched."""
    target_job = TargetJob(tmp_path, cls)
    for outcome in target_job.recover(intent=Intent.START):
        assert outcome.answer == Nothing()
        assert outcome.digest.step == 0


@every_target
def test_nothing_to_resume_from_is_an_error_on_every_rank(tmp_path, cls):
    """Under RESUME an empty storage is an error whose text names the path that was looked for."""
    target_job = TargetJob(tmp_path, cls)
    for failure in target_job.recover_outcomes().failures:
        assert failure.kind == "CheckpointError"
        assert str(target_job.shared) in failure.text


@every_target
def test_a_third_attempt_goes_on_saving_where_the_second_left_off(tmp_path, cls):
    """Recover, save on, recover again: the steps saved by different attempts don't get in each other's way."""
    target_job = TargetJob(tmp_path, cls)
    target_job.train()
    second = target_job.train(attempt=1, start=Intent.RESUME, last=8)
    for before, after in zip(second, target_job.recover(attempt=2), strict=True):
        assert after.answer == Chosen(8)
        assert after.digest == before.digests[8]


@every_target
@every_strategy
def test_what_is_retained_can_be_loaded_by_its_step(tmp_path, cls, strategy):
    """Each step in the list comes back whole on every rank, the newest is in it, and looking changes no file."""
    target_job = TargetJob(tmp_path, cls, strategy)
    saved = target_job.train(last=6)
    before = {path: (tmp_path / path).read_bytes() for path in files_under(tmp_path)}
    for life, audit in zip(saved, target_job.audit(), strict=True):
        assert max(audit) == 6
        assert audit == {step: life.digests[step] for step in audit}
    assert {path: (tmp_path / path).read_bytes() for path in files_under(tmp_path)} == before


@every_target
def test_nothing_retained_is_an_empty_list_and_a_missing_step_an_error(tmp_path, cls):
    """On an empty storage the list is empty, and loading a step raises on every rank, naming a path."""
    target_job = TargetJob(tmp_path, cls)
    assert target_job.audit() == [{}, {}]
    for failure in target_job.audit_outcomes(asked=[2]).failures:
        assert "CheckpointError" in failure.kind
        assert str(tmp_path) in failure.text


@every_target
def test_stages_are_marked_in_their_order(tmp_path, cls):
    """A save marks where its work goes from one stage to the next; the marks are the names that the design knows."""
    marks: list[str] = []
    target_job = TargetJob(tmp_path, cls)

    def life(rank: int) -> list[str]:
        job, target = job_of(1, rank), target_job.target(rank, 1, 0, marks)
        target.recover(job.state, Intent.START)
        train_step(job)
        target.save(job.state, 1).wait()
        target.close()
        return marks

    (seen,) = run_ranks(1, life).results
    order = ["discover", "load", "snapshot", "persist", "commit", "retire"]
    assert seen == sorted(seen, key=order.index)
    assert seen[:2] == ["discover", "snapshot"] or cls is MyTarget
