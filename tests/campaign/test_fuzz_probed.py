"""Campaigns about a script that tells more: by the probe what nothing else shows is found, by --track a directory beside {out}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaosckpt.faults.errno import StorageError
from chaosckpt.model.fault import Trigger
from tests.campaign.test_fuzz_command import chaosckpt, script
from tests.engine.scripts import arena_for, python, run_once, scenario_of
from tests.scripts.subject import Subject

PROBED = """
import json, os, random, re, sys
from chaosckpt import probe
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
order = random.Random(0).sample(range(12), 12)
state = {"step": 0, "position": 0, "momentum": 0}
done = sorted(int(f[1]) for n in os.listdir(out) if (f := re.fullmatch(r"ckpt-([0-9]+)", n)))
if done:
    with open(f"{out}/ckpt-{done[-1]}") as file:
        state = json.load(file)
    LOST BEFORE
    probe.resumed(state["step"], state)
    LOST AFTER
while state["step"] < 6:
    samples = order[state["position"]:][:2]
    state = {"step": state["step"] + 1, "position": state["position"] + 2, "momentum": state["momentum"] + sum(samples)}
    probe.trained(state["step"], samples)
    if state["step"] % 2 == 0:
        with open(f"{out}/new", "w") as file:
            json.dump(state, file)
        os.replace(f"{out}/new", f"{out}/ckpt-{state['step']}")
        probe.saved(state["step"], state)
with open(f"{out}/final", "w") as file:
    file.write("6")
"""
"""Two samples a step, in an order that was drawn once; its result depends on nothing that could be lost."""

SIGNS = ["--checkpoints", "{out}/ckpt-*", "--result", "{out}/final"]


def fuzz(directory: Path, text: str, *options: str) -> dict[str, Any]:
    done = chaosckpt(directory, "fuzz", "--workers", "1", "--json", *SIGNS, *options, *script(directory, text))
    assert done.returncode in (0, 1), done.stdout + done.stderr[-2000:]
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("pass", "pass", set()),
        ("pass", "state['position'] = 0", {"exactly-once-data"}),
        ("state['momentum'] = 0", "pass", {"full-state"}),
    ],
    ids=["right", "the order of the data is lost", "momentum is lost"],
)
def test_what_only_the_probe_shows_is_found(tmp_path: Path, before: str, after: str, found: set[str]) -> None:
    """Goal: with three lines of the script's own, lost data and lost state are findings, though the end is the same."""
    summary = fuzz(tmp_path, PROBED.replace("LOST BEFORE", before).replace("LOST AFTER", after), "--trials", "6")
    assert summary["launch"] == "fork"
    assert summary["inconclusive"] == 0, summary["inconclusive_reasons"]
    assert {finding["invariant"] for finding in summary["findings"]} == found
    assert all(finding["reproduced"] == "10/10" for finding in summary["findings"])


STAGED = """
import os, re, sys
out, stage = sys.argv[1:3]
os.makedirs(out, exist_ok=True)
done = sorted(int(f[1]) for n in os.listdir(out) if (f := re.fullmatch(r"ckpt-([0-9]+)", n)))
step = int(open(f"{out}/ckpt-{done[-1]}").read()) if done else 0
if step:
    print("resumed from step", step)
while step < 6:
    step += 1
    if step % 2 == 0:
        try:
            with open(f"{stage}/new", "w") as file:
                file.write(f"{step}")
            os.replace(f"{stage}/new", f"{out}/ckpt-{step}")
        except OSError:
            HANDLED
        print("saved step", step)
with open(f"{out}/final", "w") as file:
    file.write("6")
"""
"""Writes in a directory beside {out} and moves in."""

SCENARIO = """
name = "staged"
[command]
argv = ["python3", "train.py", "{out}", "stage"]
checkpoints = "{out}/ckpt-*"
resumed = 'resumed from step (\\d+)'
saved = 'saved step (\\d+)'
result = "{out}/final"
track = ["stage"]
"""


@pytest.mark.parametrize("tracked", [True, False])
def test_a_tracked_directory_is_traced_and_may_be_written_to(tmp_path: Path, tracked: bool) -> None:
    """Goal: --track makes a directory part of what is watched; without it nothing there is changed."""
    stage = tmp_path / "stage"
    stage.mkdir()
    (tmp_path / "train.py").write_text(STAGED.replace("HANDLED", "raise"))
    argv = python(tmp_path / "train.py", "{out}", str(stage))
    scenario = scenario_of(argv, tmp_path, track=(str(stage),) if tracked else ())
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
        assert (run.outcome == "finished") is tracked, run.output
        assert bool(run.refused) is not tracked
    seen = {(row.address.op, row.address.path, row.destination) for row in run.trace if "track0" in row.address.path}
    assert (("rename", "track0:new", "out:ckpt-2") in seen) is tracked
    assert (("write", "track0:new", None) in seen) is tracked


@pytest.mark.parametrize(
    ("handled", "outcome"),
    [("raise", "pass"), ("pass", "violation")],
    ids=["the error ends it", "the error is ignored"],
)
def test_faults_strike_in_a_tracked_directory(tmp_path: Path, handled: str, outcome: str) -> None:
    """Goal: what goes wrong only when the directory beside {out} fails is found there, and a script that minds it is left alone."""
    (tmp_path / "stage").mkdir()
    (tmp_path / "train.py").write_text(STAGED.replace("HANDLED", handled))
    (tmp_path / "mine.toml").write_text(SCENARIO)
    staged = Subject(tmp_path / "mine.toml")
    try:
        address = staged.address("write", "track0:new")
        verdict = staged.struck(StorageError(at=Trigger(address)))
    finally:
        staged.close()
    assert verdict.outcome == outcome, verdict
    if verdict.primary is not None:
        assert (verdict.primary.invariant, verdict.primary.step) == ("newest-complete", 6)
        assert verdict.primary.path == "track0:new"
