"""`dcp-fsspec` against a real S3 server: what is committed comes back, what isn't is passed over, and a server that is gone is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.targets import Chosen, Intent, Nothing
from chaosckpt.targets.dcp_fsspec import DcpFsspec
from chaosckpt.training.loop import train_step
from tests.targets.s3 import BUCKET, ENVIRONMENT, Server, client, key, names, serving
from tests.targets.target_job import TargetJob
from tests.training.ranks import Failure, Ranks, job_of, run_ranks

URL = f"s3://{BUCKET}/jobs"


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    """A server with an empty bucket, to which the environment leads."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with serving() as started:
        monkeypatch.setenv("AWS_ENDPOINT_URL", started.url)
        client(started).create_bucket(Bucket=BUCKET)
        yield started


@pytest.fixture
def target_job(tmp_path, server) -> TargetJob:
    return TargetJob(tmp_path, DcpFsspec, url=URL)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_what_was_saved_comes_back_whole(tmp_path, server, strategy):
    """After a restart each rank holds bitwise what it held at the save, and trains on alike; nothing of it lies on the file system."""
    target_job = TargetJob(tmp_path, DcpFsspec, strategy, url=URL)
    saved = target_job.train()
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]
        assert after.losses == before.losses
    assert [path.name for path in target_job.shared.iterdir()] == ["object-store-prefix"]
    assert {name.partition("/")[0].partition(".")[0] for name in names(server)} == {"step-000002", "step-000004"}


def test_nothing_to_resume_from_is_an_error_and_a_first_launch_is_none(target_job):
    """An empty bucket means Nothing under START, and under RESUME an error on every rank that names where it looked."""
    assert {outcome.answer for outcome in target_job.recover(intent=Intent.START)} == {Nothing()}
    for failure in target_job.recover_outcomes().failures:
        assert failure.kind == "CheckpointError"
        assert URL in failure.text


def test_a_save_without_its_commit_is_passed_over_and_replaced(target_job, server):
    """Killed before the commit: step 2 is chosen, step 4 is saved again, and nothing of the interrupted save stays."""
    target_job.train()
    client(server).delete_object(Bucket=BUCKET, Key=_commit_of(server, 4))
    before = {name for name in names(server) if name.startswith("step-000004/")}
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}
    second = target_job.train(attempt=1, start=Intent.RESUME)
    after = {name for name in names(server) if name.startswith("step-000004/")}
    assert before
    assert not before & after
    for saved, outcome in zip(second, target_job.recover(attempt=2), strict=True):
        assert (outcome.answer, outcome.digest) == (Chosen(4), saved.digests[4])


def _commit_of(server: Server, step: int) -> str:
    found = client(server).list_objects_v2(Bucket=BUCKET)["Contents"]
    (one,) = [
        entry["Key"] for entry in found if entry["Key"].endswith(".commit") and f"/step-{step:06d}." in entry["Key"]
    ]
    return str(one)


def test_a_commit_whose_objects_are_gone_is_an_error_that_names_one(target_job, server):
    """What a commit vouches for must be there in full; no rank goes on with a part of it, or with an older step."""
    target_job.train()
    shard = next(name for name in names(server) if name.startswith("step-000004/") and name.endswith("__1_0.distcp"))
    client(server).put_object(Bucket=BUCKET, Key=key(server, shard), Body=b"torn")
    for failure in target_job.recover_outcomes().failures:
        assert failure.kind == "CheckpointError"
        assert "__1_0.distcp has 4 bytes" in failure.text


def test_a_late_commit_of_an_older_attempt_does_not_win(target_job, server):
    """A writer that was thought dead commits its save of the same step after the new job did: the new job's is taken."""
    target_job.train()
    old = _commit_of(server, 4)
    content = client(server).get_object(Bucket=BUCKET, Key=old)["Body"].read()
    client(server).delete_object(Bucket=BUCKET, Key=old)
    second = target_job.train(attempt=1, start=Intent.RESUME)
    client(server).put_object(Bucket=BUCKET, Key=old, Body=content)
    for saved, outcome in zip(second, target_job.recover(attempt=2), strict=True):
        assert (outcome.answer, outcome.digest) == (Chosen(4), saved.digests[4])


def test_keep_retires_the_oldest(tmp_path, server):
    """Only the newest `keep` checkpoints stay in the bucket."""
    target_job = TargetJob(tmp_path, DcpFsspec, url=URL, keep=1)
    target_job.train(last=6)
    assert {name[:11] for name in names(server)} == {"step-000006"}


def test_two_jobs_in_one_bucket_are_strangers(tmp_path, server):
    """Each job has a prefix of its own, kept with its shared storage."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (TargetJob(tmp_path / name, DcpFsspec, url=URL) for name in ("one", "two"))
    one.train()
    assert {outcome.answer for outcome in two.recover(intent=Intent.START)} == {Nothing()}
    assert {outcome.answer for outcome in one.recover()} == {Chosen(4)}


def test_a_url_that_is_none_is_refused(tmp_path):
    """One sentence with the value and the next step."""
    target = TargetJob(tmp_path, DcpFsspec, url="checkpoints").target(0, 1, 0)
    assert isinstance(target, DcpFsspec)
    with pytest.raises(
        UsageError, match=r"target\.options\.url = 'checkpoints' names no object store; write a URL such as s3://"
    ):
        target.url()


def saving(target_job: TargetJob, last: int = 4) -> Ranks[int]:
    """Two ranks that train, and save after each second step, until a save fails."""

    def life(rank: int) -> int:
        job, target = job_of(2, rank, 0), target_job.target(rank, 2, 0)
        target.recover(job.state, Intent.START)
        while job.state.step < last:
            train_step(job)
            if job.state.step % 2 == 0:
                target.save(job.state, job.state.step).wait()
        return job.state.step

    return run_ranks(2, life)


@pytest.mark.parametrize(
    ("match", "at", "when", "left"),
    [
        ("PUT .*/step-000004/.*distcp", 1, "before", 2),
        ("PUT .*/step-000004/.*distcp", 2, "after", 2),
        ("PUT .*/step-000004/.*metadata", 1, "before", 2),
        ("PUT .*/step-000004.*commit", 1, "before", 2),
        ("PUT .*/step-000004.*commit", 1, "after", 4),
    ],
    ids=["first shard", "shards written", "metadata", "commit", "commit written, answer lost"],
)
def test_a_front_killed_in_a_save_fails_it_clearly_and_loses_nothing(
    tmp_path, server, monkeypatch, match, at, when, left
):
    """The server before the storage is killed at an exact request of the second save: every rank says so, and when it is back the job
    goes on from the newest committed step, which is the second one only where its commit had been stored."""
    target_job = TargetJob(tmp_path, DcpFsspec, url=URL)
    behind = ("--front", str(server.port))
    with serving(*behind, "--die-at", str(at), "--match", match, "--when", when) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL", front.url)
        failures = saving(target_job).failures
        assert front.awaited() == -9
    _clear(failures)
    with serving(*behind, port=front.port):
        assert {outcome.answer for outcome in target_job.recover()} == {Chosen(left)}


def _clear(failures: list[Failure]) -> None:
    for failure in failures:
        assert failure.kind == "CheckpointError"
        assert URL in failure.text


def test_a_server_killed_in_a_save_with_all_it_held_is_told_by_every_rank(tmp_path, monkeypatch):
    """The storage itself dies in the second save. While it is gone, and when it is back without its content, every rank fails, naming
    what it looked for; none begins at step 0."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    target_job = TargetJob(tmp_path, DcpFsspec, url=URL)
    # The first request of all makes the bucket.
    with serving("--die-at", "1", "--match", "PUT .*/step-000004/", "--when", "before") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        client(server).create_bucket(Bucket=BUCKET)
        _clear(saving(target_job).failures)
        assert server.awaited() == -9
    _clear(target_job.recover_outcomes().failures)
    with serving(port=server.port):
        _clear(target_job.recover_outcomes().failures)


def test_a_job_keeps_its_prefix(target_job):
    """A second launch on the same shared storage uses the prefix of the first one."""
    target_job.train()
    first = Path(target_job.shared / "object-store-prefix").read_text()
    target_job.recover()
    assert Path(target_job.shared / "object-store-prefix").read_text() == first
