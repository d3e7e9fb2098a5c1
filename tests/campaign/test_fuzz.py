"""Whole campaigns through the command line: found, shrunk, reproduced, interrupted, killed and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaosckpt.campaign.store import TrialLog

SCENARIO = """
name = "small overwrite"
[target]
use = "dcp-overwrite"
[topology]
ranks = [[2]]
[workload]
steps = 2
save_every = 1
[faults.kinds]
cut = 1.0
"""
BOUND_SECONDS = 240


class Campaigns:
    """Runs the command line in a directory whose name has a space and a letter that is not ASCII."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.scenario = directory / "small.toml"
        self.scenario.write_text(SCENARIO)
        self.correct = directory / "correct.toml"
        self.correct.write_text(SCENARIO.replace("dcp-overwrite", "torch-save-atomic"))
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(directory / "cache"), OMP_NUM_THREADS="1")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "chaosckpt", *arguments]
        return subprocess.Popen(
            command, cwd=self.directory, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=BOUND_SECONDS)
        return process.returncode, out, err

    def fuzz(self, run: str, *arguments: str, scenario: Path | None = None) -> subprocess.Popen[str]:
        return self.start(
            "fuzz", str(scenario or self.scenario), "--workers", "1", "--json", "--run-dir", run, *arguments
        )


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Campaigns:
    return Campaigns(tmp_path_factory.mktemp("läufe mit leerzeichen"))


@pytest.fixture(scope="module")
def found(campaigns: Campaigns) -> dict[str, object]:
    """The result of a campaign that finds the fault of saving in place."""
    process = campaigns.fuzz("found", "--trials", "4", "--seed", "1")
    out, err = process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode == 1, err
    result: dict[str, object] = json.loads(out)
    return result


def wait_for(condition: Callable[[], bool]) -> None:
    """Look again and again, within a bound that only a broken program meets."""
    until = time.monotonic() + BOUND_SECONDS
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.05)


def finished(run: Path) -> int:
    return sum(1 for _ in TrialLog(run).read())


def session_processes(directory: Path) -> list[int]:
    """Processes that were started below a directory's campaigns: they carry its cache in their environment."""
    marker = f"XDG_CACHE_HOME={directory / 'cache'}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids


def test_the_overwritten_checkpoint_is_found_and_shrunk_to_one_fault(
    campaigns: Campaigns, found: dict[str, object]
) -> None:
    """Goal: one finding leads, with one fault, the sentence a person needs, and 10 of 10 replays."""
    findings = found["findings"]
    assert isinstance(findings, list)
    first = findings[0]
    assert first["invariant"] == "newest-complete"
    assert len(first["faults"]) == 1
    assert first["reproduced"] == "10/10"
    assert "rank" in first["sentence"]
    assert "step 1" in first["sentence"]
    folder = Path(first["path"])
    names = {path.name for path in folder.iterdir()}
    assert {
        "README.md",
        "ISSUE.md",
        "scenario.toml",
        "schedule.json",
        "shrunk.json",
        "census.json",
        "journals",
        "finding.json",
    } <= names
    assert str(campaigns.directory) not in (folder / "ISSUE.md").read_text()


def test_a_finding_is_reproduced_without_ray(campaigns: Campaigns, found: dict[str, object]) -> None:
    """Goal: the command that the summary names shows the violation again, each time."""
    folder = found["findings"][0]["path"]  # type: ignore[index]
    status, out, err = campaigns.run("reproduce", str(folder), "--times", "2", "--json")
    assert status == 1, err
    assert json.loads(out)["reproduced"] == "2/2"


def test_a_trial_is_drawn_again_from_its_name(campaigns: Campaigns, found: dict[str, object]) -> None:
    """Goal: SEED:INDEX alone gives the same schedule and the same verdict."""
    trial = found["findings"][0]["trials"][0]  # type: ignore[index]
    status, out, err = campaigns.run(
        "reproduce", "--scenario", str(campaigns.scenario), "--trial", trial, "--times", "1", "--json"
    )
    assert status == 1, err
    assert json.loads(out)["replays"][0]["outcome"] == "violation"


def test_stored_journals_are_judged_alike(campaigns: Campaigns, found: dict[str, object]) -> None:
    """Goal: `judge` says of every stored journal what the campaign said."""
    _, out, err = campaigns.run("judge", "found", "--json")
    judged = json.loads(out)
    assert (judged["trials"], judged["violations"]) == (found["trials"], found["violations"]), err


def test_a_killed_coordinator_goes_on_where_it_was(campaigns: Campaigns) -> None:
    """Goal: SIGKILL of the driver costs at most the running trial: it is started again, and no trial counts twice or is missing."""
    run = campaigns.directory / "killed"
    process = campaigns.fuzz("killed", "--trials", "4", "--seed", "2")
    wait_for(lambda: finished(run) >= 2)
    for pid in session_processes(campaigns.directory):
        if b"chaosckpt.campaign.coordinator" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=BOUND_SECONDS)
    assert process.returncode in (0, 1), err
    assert json.loads(out)["trials"] == 4
    assert sorted(record.index for record in TrialLog(run).read()) == list(range(4))


def test_an_interrupted_campaign_keeps_its_part_and_goes_on(campaigns: Campaigns) -> None:
    """Goal: Ctrl-C stores the partial result and leaves no process; --resume finishes the rest."""
    run = campaigns.directory / "interrupted"
    process = campaigns.fuzz("interrupted", "--trials", "6", "--seed", "3", scenario=campaigns.correct)
    wait_for(lambda: finished(run) >= 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=BOUND_SECONDS)
    partial = json.loads(out)
    assert partial["interrupted"] is True, err
    assert 2 <= partial["trials"] < 6
    wait_for(lambda: not session_processes(campaigns.directory))
    status, out, err = campaigns.run("fuzz", "--resume", str(run), "--json", "--workers", "1")
    assert status in (0, 1), err
    assert json.loads(out)["trials"] == 6
    assert sorted(record.index for record in TrialLog(run).read()) == list(range(6))
