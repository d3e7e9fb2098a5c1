"""Run directories: made, numbered and marked; anything else is refused and left alone."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from chaosckpt.campaign import finding_store, run_directory
from chaosckpt.errors import UsageError


def test_numbered_from_one(tmp_path):
    """Without a name, runs are chaosckpt-runs/001, 002 and so on; foreign names in between don't matter."""
    first = run_directory.create(None, tmp_path)
    assert first == tmp_path / "chaosckpt-runs" / "001"
    (first.parent / "notes").mkdir()
    (first.parent / "041").mkdir()
    assert run_directory.create(None, tmp_path).name == "042"
    assert run_directory.is_marked(first)


def test_runs_that_start_at_once_never_share_a_directory(tmp_path):
    """Sixteen runs that begin together get sixteen directories."""
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: run_directory.create(None, tmp_path), range(16)))
    assert len(set(made)) == 16
    assert all(run_directory.is_marked(path) for path in made)


def test_a_new_or_an_empty_directory_is_taken(tmp_path):
    """A path that isn't there is made with its parents; an empty directory is used as it is."""
    assert run_directory.is_marked(run_directory.create(tmp_path / "a" / "b"))
    (tmp_path / "empty").mkdir()
    assert run_directory.is_marked(run_directory.create(str(tmp_path / "empty")))


def refused(tmp_path, path, *parts: str) -> None:
    before = sorted(os.walk(tmp_path))
    with pytest.raises(UsageError) as caught:
        run_directory.create(path)
    for part in parts:
        assert part in str(caught.value)
    assert sorted(os.walk(tmp_path)) == before, "nothing is touched"


def test_a_foreign_directory_is_left_alone(tmp_path):
    """A directory that holds anything and has no mark is refused."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused(tmp_path, tmp_path / "mine", str(tmp_path / "mine"), "not empty", "--run-dir")


def test_a_file_is_no_directory(tmp_path):
    """A file, also as a parent, is refused."""
    (tmp_path / "file").write_text("")
    refused(tmp_path, tmp_path / "file", "is a file")
    refused(tmp_path, tmp_path / "file" / "run", "can't be created")


def test_a_used_run_is_not_begun_again(tmp_path):
    """A directory with a run is refused with the way to go on with it, and so is a place inside it."""
    used = run_directory.create(tmp_path / "run")
    refused(tmp_path, used, "--resume")
    refused(tmp_path, used / "findings" / "mine", "lies inside the run")


def test_only_marked_directories_are_runs(tmp_path):
    """`existing` returns a run, and refuses what isn't one."""
    assert run_directory.existing(run_directory.create(tmp_path / "run")) == tmp_path / "run"
    for path, part in ((tmp_path / "gone", "no run directory"), (tmp_path, "not a run directory")):
        with pytest.raises(UsageError, match=part):
            run_directory.existing(path)


@pytest.mark.parametrize(
    ("mark", "part"),
    [
        (b'{"layout":1,"chaosckpt":"0.1.0"}\n', "has format 1, and this version reads format 2: an older version"),
        (b'{"format":99}\n', "has format 99, and this version reads format 2: a newer version"),
        (b"not JSON", "cannot be read"),
    ],
)
def test_a_run_of_another_format_is_refused(tmp_path, mark: bytes, part: str):
    """A run of another version is refused with both numbers and the next step, instead of read in part."""
    run = run_directory.create(tmp_path / "run")
    (run / run_directory.MARK).write_bytes(mark)
    with pytest.raises(UsageError, match=part):
        run_directory.existing(run)


def test_a_finding_of_another_format_is_refused(tmp_path):
    """Likewise a finding: its names of invariants and events are another version's."""
    (tmp_path / finding_store.FILE).write_text('{"finding":{"id":"001-ack-truth"}}')
    with pytest.raises(UsageError, match=r"finding.json has format 1, and this version reads format 2"):
        finding_store.read(tmp_path)
