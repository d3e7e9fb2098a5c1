"""Comparing two stored measurements."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from chaosckpt.errors import UsageError
from chaosckpt.measure.comparison import compare, compared, read
from chaosckpt.measure.measurement import Measurement, Spread, document
from tests.measure.pages.measurements import BARE, FULL


def stored(tmp_path, name: str, measurement: Measurement) -> str:
    path = tmp_path / name
    path.write_bytes(msgspec.json.encode(document(measurement)))
    return str(path)


def test_a_document_comes_back(tmp_path):
    """What was written is read back as it was, also where most was not measured."""
    for measurement in (FULL, BARE):
        assert read(stored(tmp_path, "a.json", measurement)) == document(measurement)


def test_the_json_begins_with_the_eight_figures():
    """The eight keys come first and are plain numbers; the details follow."""
    found = msgspec.to_builtins(document(FULL))
    assert list(found) == [
        "interval_seconds",
        "checkpoint_bytes",
        "ranks",
        "stall_seconds",
        "completion_seconds",
        "contention_ratio",
        "retained_generations",
        "restart_seconds",
        "details",
    ]
    assert found["stall_seconds"] == pytest.approx(0.315), "the median of the slowest rank"
    assert found["contention_ratio"] == 2.5, "beside the most neighbours"
    assert found["restart_seconds"] == pytest.approx(4.62), "with a cold cache"
    bare = document(BARE)
    assert (bare.contention_ratio, bare.restart_seconds) == (None, None)


def test_ratios(tmp_path):
    """Twice the completion is a ratio of two, apart from the first's spread; what is equal has ratio one."""
    slower = tuple(
        replace(figure, completion_seconds=Spread(tuple(2 * sample for sample in figure.completion_seconds.samples)))
        for figure in FULL.figures
    )
    found = compare(stored(tmp_path, "a.json", FULL), stored(tmp_path, "b.json", replace(FULL, figures=slower)))
    rows = {row.name: row for row in found.rows}
    assert rows["completion"].ratio == pytest.approx(2.0)
    assert rows["completion"].apart is True
    assert (rows["stall"].ratio, rows["stall"].apart) == (1.0, False)
    assert rows["ranks"].apart is None
    assert not found.differences


def test_what_was_not_measured_has_no_ratio():
    """A figure that one of the two lacks, or that was 0 before, has no ratio."""
    rows = {row.name: row for row in compared(document(FULL), document(BARE), "a", "b").rows}
    assert (rows["restart"].after, rows["restart"].ratio) == (None, None)
    assert (rows["contention"].before, rows["contention"].ratio) == (2.5, None)
    assert rows["peak of /dev/shm"].ratio is None


def test_other_differences_are_told():
    """Targets, versions and file systems that differ are named, since a ratio may be due to them."""
    other = replace(FULL, target="torch-save", versions={"python": "3.12.0", "torch": "2.13.0"}, file_systems=())
    found = {
        entry.what: (entry.before, entry.after)
        for entry in compared(document(FULL), document(other), "a", "b").differences
    }
    assert found["target"] == ("dcp-async", "torch-save")
    assert found["version of python"] == ("3.11.7", "3.12.0")
    assert found["file system of shared"] == ("ext4 (rw,relatime,discard)", "none")
    assert "version of torch" not in found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a measurement"),
        (b"\xff\xfe", "is not a measurement"),
        (b"[1, 2]", "is not a measurement"),
        (b'{"trials": 3}', "missing required field `details`"),
        (b'{"details": {"format": 1}}', "is not a measurement"),
        (b'{"details": {"format": 99}}', "format 99"),
    ],
)
def test_what_is_no_measurement_is_refused(tmp_path, content, words):
    """A file that is not a measurement is refused in one sentence that names it and says what to do."""
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    """An absent file and a directory are refused by name."""
    with pytest.raises(UsageError, match=r"absent\.json can't be read: No such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        read(tmp_path)
