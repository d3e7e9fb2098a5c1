"""The benchmarks run, and say what they measured; what they measure is for people to read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.result import Target, number, ratio

ROOT = Path(__file__).parent.parent


def test_a_run_prints_a_table_and_json(tmp_path):
    """With one repetition the cheapest subject runs through: valid JSON in the file, a table on stderr, no litter."""
    file, temporary = tmp_path / "result.json", tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "gate", "--repetitions", "1", "--json", str(file)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout == ""
    assert "gated" in done.stderr
    report = json.loads(file.read_text())
    (result,) = report["results"]
    assert result["subject"] == "gate"
    assert result["target"] == {"sense": "at most", "value": 1.3}
    assert result["details"]["gated_cpu_seconds"] > 0
    assert report["machine"]["cores"] == len(os.sched_getaffinity(0))
    # torch itself leaves an empty directory for compiled kernels.
    assert [path for path in temporary.iterdir() if "inductor" not in path.name] == []


def test_a_wrong_subject_is_refused():
    """A subject that there is not is named, with those that there are."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "gait"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "'gait' is not one of 'gate'" in done.stderr


def test_a_ratio_is_that_of_the_medians():
    """The value compares medians, the spread is that of the pairs, and the target is held against the value."""
    result = ratio("x", "one over two", [3.0, 4.0, 8.0], [2.0, 2.0, 2.0], Target("at most", 2.0), seconds=4.0)
    assert (result.value, result.low, result.high, result.repetitions) == (2.0, 1.5, 4.0, 3)
    assert result.met is True
    assert result.details == {"seconds": 4.0}
    assert number("x", "rate", [149.0], "trials/min", Target("at least", 150.0)).met is False
    assert number("x", "for information", [1.0], "s").met is None
