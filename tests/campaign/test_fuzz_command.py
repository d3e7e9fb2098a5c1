"""Campaigns about an unmodified command, as a user runs them: what is found, what is refused, and that nothing is harmed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.scripts import COUNTING

SIGNS = [
    "--checkpoints",
    "{out}/ckpt-*",
    "--resumed",
    r"resumed from step (\d+)",
    "--saved",
    r"saved step (\d+)",
    "--result",
    "{out}/final",
]
IN_PLACE = COUNTING.replace('open(f"{out}/new", "w")', 'open(f"{out}/ckpt-{step}", "w")').replace(
    '        os.replace(f"{out}/new", f"{out}/ckpt-{step}")\n', ""
)


def chaosckpt(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "chaosckpt", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def script(directory: Path, text: str) -> list[str]:
    (directory / "train.py").write_text(text)
    return ["--", sys.executable, "train.py", "{out}"]


def test_a_script_that_saves_in_place_is_found_out_and_the_finding_reproduces(tmp_path: Path) -> None:
    """Goal: without a change to the script its torn checkpoint is found, shrunk to one fault, named by its file, and replayed."""
    done = chaosckpt(
        tmp_path,
        "fuzz",
        "--trials",
        "12",
        "--workers",
        "1",
        "--json",
        "--run-dir",
        "run",
        *SIGNS,
        *script(tmp_path, IN_PLACE),
    )
    assert done.returncode == 1, done.stderr[-2000:]
    summary = json.loads(done.stdout)
    # After a torn first checkpoint nothing of a later attempt is reached, so that what was to strike there misses.
    assert summary["inconclusive"] <= 2, summary["inconclusive_reasons"]
    assert (summary["launch"], summary["launcher"]) == ("fork", "the script itself")
    finding = summary["findings"][0]
    assert finding["confirmed_cold"] is True
    assert finding["reproduced"] == "10/10"
    assert len(finding["faults"]) == 1
    assert " ckpt-" in finding["faults"][0]
    assert "while saving step" in finding["faults"][0]
    assert "out:" not in finding["faults"][0], "the exact address stands in the finding's folder"
    again = chaosckpt(tmp_path, "reproduce", finding["path"], "--times", "2", "--json")
    assert again.returncode == 1, again.stderr[-2000:]
    assert json.loads(again.stdout)["replays"][1]["same"] is True
    told = chaosckpt(tmp_path, "judge", "run", "--explain", finding["trials"][0])
    assert "Verdict: VIOLATION" in told.stdout


def test_what_only_a_warm_rank_shows_is_told_as_that(tmp_path: Path) -> None:
    """Goal: a fault of the way in which chaosckpt starts ranks is not blamed on the script without a word."""
    only_warm = COUNTING.replace(
        "done = sorted",
        'if os.path.exists(f"{out}/new") and "chaosckpt.engine" in str(sys.orig_argv):\n    sys.exit("warm")\ndone = sorted',
    )
    done = chaosckpt(
        tmp_path,
        "fuzz",
        "--trials",
        "12",
        "--workers",
        "1",
        "--json",
        "--run-dir",
        "run",
        *SIGNS,
        *script(tmp_path, only_warm),
    )
    summary = json.loads(done.stdout)
    assert {finding["confirmed_cold"] for finding in summary["findings"]} == {False}, done.stderr[-2000:]
    assert "did not show it" in (Path(summary["findings"][0]["path"]) / "README.md").read_text()


def test_a_script_that_replaces_is_left_alone(tmp_path: Path) -> None:
    """Goal: no false alarm; and with a glob that is guessed, and nothing else, it is said what more could be judged."""
    done = chaosckpt(tmp_path, "fuzz", "--trials", "12", "--workers", "1", "--json", *script(tmp_path, COUNTING))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    summary = json.loads(done.stdout)
    assert (summary["passed"], summary["violations"]) == (12, 0)
    remarks = " ".join(summary["remarks"])
    assert "{out}/ckpt-*" in remarks
    assert "--resumed" in remarks
    assert "--result" in remarks
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chaosckpt-runs", "train.py"]


ROLLING = COUNTING.replace(
    """done = sorted(int(f[1]) for n in os.listdir(out) if (f := re.fullmatch(r"ckpt-([0-9]+)", n)))
step = int(open(f"{out}/ckpt-{done[-1]}").read()) if done else 0
""",
    """last = f"{out}/last"
step = int(open(last).read()) if os.path.exists(last) else 0
""",
).replace('f"{out}/ckpt-{step}")', "last)")


@pytest.mark.parametrize("in_place", [True, False])
def test_a_checkpoint_that_always_has_the_same_name(tmp_path: Path, in_place: bool) -> None:
    """Goal: without a number in its name it is guessed and struck like any other; found bare only where it is written in place."""
    text = ROLLING
    if in_place:
        text = text.replace('open(f"{out}/new", "w")', 'open(last, "w")').replace(
            '        os.replace(f"{out}/new", last)\n', ""
        )
    done = chaosckpt(
        tmp_path, "fuzz", "--trials", "12", "--workers", "1", "--json", *SIGNS[2:], *script(tmp_path, text)
    )
    summary = json.loads(done.stdout)
    assert any("chaosckpt took {out}/last from" in remark for remark in summary["remarks"]), summary["remarks"]
    assert done.returncode == int(in_place), done.stdout + done.stderr[-2000:]
    broken = {finding["invariant"] for finding in summary["findings"]}
    assert ("always-recoverable" in broken) is in_place, broken


def test_names_that_are_drawn_anew_each_time_are_struck_too(tmp_path: Path) -> None:
    """Goal: a save under a name of tempfile's is in the census with all its operations, and faults aimed there land."""
    text = COUNTING.replace("import os,", "import tempfile, os,").replace(
        """        with open(f"{out}/new", "w") as file:
            file.write(f"{step}")
        os.replace(f"{out}/new", """,
        """        with tempfile.NamedTemporaryFile("w", dir=out, delete=False) as file:
            file.write(f"{step}")
        os.replace(file.name, """,
    )
    assert "NamedTemporaryFile" in text
    done = chaosckpt(
        tmp_path,
        "fuzz",
        "--trials",
        "12",
        "--workers",
        "1",
        "--json",
        "--run-dir",
        "run",
        *SIGNS,
        *script(tmp_path, text),
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    summary = json.loads(done.stdout)
    assert summary["inconclusive"] == 0, summary["inconclusive_reasons"]
    census = json.loads((tmp_path / "run" / "census.json").read_text())
    addresses = [point["address"] for point in census["runs"][0]["points"]]
    assert {(at["op"], at["incarnation"]) for at in addresses if at["path"] == "out:tmp*"} >= {
        ("write", 1),
        ("write", 3),
    }


def test_a_command_that_leaves_nothing_to_strike_is_refused(tmp_path: Path) -> None:
    """Goal: a campaign without a single operation to strike says so, in place of passing."""
    done = chaosckpt(tmp_path, "fuzz", "--trials", "4", *script(tmp_path, "print('nothing to see')"))
    assert done.returncode == 2, done.stdout + done.stderr[-2000:]
    assert "looks like a checkpoint; name the checkpoints with --checkpoints" in done.stderr


def test_a_change_in_what_a_script_imports_is_no_finding(tmp_path: Path) -> None:
    """Goal: golden runs are those of the script as it is now, in files too that its command line doesn't name."""
    own = script(tmp_path, COUNTING.replace('file.write("6")', "from constants import END; file.write(END)"))
    for end in ("6", "six"):
        (tmp_path / "constants.py").write_text(f"END = {end!r}")
        done = chaosckpt(tmp_path, "fuzz", "--trials", "4", "--workers", "1", "--json", *SIGNS, *own)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("import sys; sys.exit('no data today')", [], "no data today"),
        (COUNTING, ["--checkpoints", "{out}/other-*"], "matches no file"),
        (COUNTING, ["--saved", r"stored (\d+)"], "matches no line"),
        (COUNTING, ["--checkpoints", "{out}/ckpt-*", "--resumed", r"again from (\d+)"], "matches no line"),
        (COUNTING, ["--result", "{out}/nothing"], "does not exist after the golden run"),
        ("open('/etc/chaosckpt-test', 'w')", [], "/etc/chaosckpt-test"),
    ],
    ids=["fails", "glob", "saved", "resumed", "result", "outside"],
)
def test_what_the_golden_run_refutes_is_told_in_one_sentence(
    tmp_path: Path, text: str, options: list[str], sentence: str
) -> None:
    """Goal: a command that doesn't run, and signs that never show, end before any trial, with what was seen."""
    done = chaosckpt(tmp_path, "fuzz", "--trials", "4", *options, *script(tmp_path, text))
    assert done.returncode == 2, done.stderr[-2000:]
    assert sentence in done.stderr
    assert "chaosckpt/cli" not in done.stderr
    assert not os.path.exists("/etc/chaosckpt-test")


def test_what_a_restart_of_the_finished_job_shows_needs_no_fault(tmp_path: Path) -> None:
    """Goal: a last checkpoint of another shape is one finding, with no fault to blame, whatever the trials injected."""
    last_differs = COUNTING.replace('file.write(f"{step}")', 'file.write(f"{step}" if step < 6 else "model")')
    done = chaosckpt(
        tmp_path,
        *("fuzz", "--trials", "8", "--workers", "1", "--json", "--run-dir", "run"),
        *SIGNS,
        *script(tmp_path, last_differs),
    )
    assert done.returncode == 1, done.stderr[-2000:]
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["faults"] == []
    assert finding["root_cause"] == "newest-complete / ValueError"
    assert "Likely cause" not in finding["sentence"]
