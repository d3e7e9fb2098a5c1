"""The observer in scripts as people write them: what it sees of them, and that they never notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaosckpt.commands.trajectories import Positions, difference, learn, steady, trajectory
from chaosckpt.model.observed import ObservedStep, decoded

SCRIPTS = Path(__file__).parent / "scripts"
ZYGOTE = """
import json, os, runpy, sys, traceback, warnings
import torch, torch._dynamo
from chaosckpt.observers.torch import install
for line in sys.stdin:
    file, *sys.argv = json.loads(line)
    if (child := os.fork()) == 0:
        status = 1
        try:
            warnings.simplefilter("error", UserWarning)
            if file:
                install(file)
            runpy.run_path(sys.argv[0], run_name="__main__")
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs scripts, each in a fork of one process that has imported torch, observed where a file is named for that."""
Run = Callable[..., None]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a script with a directory for what it saves."""
    process = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def run(out: Path, script: str, *words: str, file: str = "") -> None:
        out.mkdir(exist_ok=True)
        to.write(json.dumps([file, str(SCRIPTS / script), str(out), *words]) + "\n")
        to.flush()
        assert back.readline() == "0\n"

    yield run
    process.communicate()


def seen(run: Run, tmp_path: Path, script: str, kind: str) -> tuple[list[ObservedStep], dict[int, list[ObservedStep]]]:
    """The steps of an uninterrupted run, and of a restart from each of its saves but the last."""
    whole = tmp_path / "whole"
    run(whole, script, kind, file=str(tmp_path / "0.steps"))
    for step in (2, 4):
        again = tmp_path / f"again-{step}"
        again.mkdir()
        os.link(whole / f"ckpt-{step}.pt", again / f"ckpt-{step}.pt")
        run(again, script, kind, file=str(tmp_path / f"{step}.steps"))
    files = {step: tmp_path / f"{step}.steps" for step in (0, 2, 4)}
    found = {step: decoded(file.read_text().splitlines()) if file.exists() else [] for step, file in files.items()}
    return found.pop(0), found


@pytest.mark.parametrize("lacks", ["nothing", "optimizer", "scheduler", "rng", "data", "buffers", "averages"])
def test_what_a_checkpoint_lacks_is_named(run: Run, tmp_path: Path, lacks: str) -> None:
    """Goal: one part after the other, without any option; and nothing where nothing is lacking."""
    steps, restarts = seen(run, tmp_path, "lacks.py", lacks)
    golden = trajectory(steps)
    known = learn(golden, {step: trajectory(rows) for step, rows in restarts.items()})
    assert isinstance(known, Positions)
    assert known.steps == {2: 2, 4: 4}
    found = {difference(golden, trajectory(rows), step, step, steady([golden])) for step, rows in restarts.items()}
    assert {one.part if one is not None else "nothing" for one in found} == {lacks}


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("plain", {2: 2, 4: 4}),
        ("closure", {2: 2, 4: 4}),
        ("compiled-model", {2: 2, 4: 4}),
        ("sanity", {2: 2, 4: 4}),
        ("transforms", {2: 2, 4: 4}),
        ("phantom", {2: 2, 4: 4}),
        ("two", {4: 2, 8: 4}),  # two optimizers: each of their steps counts
        ("scaler", {2: 2, 3: 4}),  # of six steps it skips one
        ("dummy", None),
        ("compiled-step", None),
        ("home-made", None),
    ],
)
def test_who_looks_guilty_and_is_not(run: Run, tmp_path: Path, kind: str, places: dict[int, int] | None) -> None:
    """Goal: nothing is told of correct scripts, whatever they do; and of those that can't be seen, no step is claimed."""
    steps, restarts = seen(run, tmp_path, "innocent.py", kind)
    golden = trajectory(steps)
    known = learn(golden, {step: trajectory(rows) for step, rows in restarts.items()})
    if places is None:
        assert isinstance(known, str)
        return
    assert isinstance(known, Positions)
    assert known.steps == places
    for place, step in places.items():
        assert difference(golden, trajectory(restarts[step]), step, place, steady([golden])) is None


@pytest.mark.parametrize(
    ("script", "kind"), [("lacks.py", "nothing"), ("innocent.py", "closure"), ("innocent.py", "transforms")]
)
def test_an_observed_script_ends_with_the_same_bits(run: Run, tmp_path: Path, script: str, kind: str) -> None:
    """Goal: neither a random number nor a rounding is another one."""
    run(tmp_path / "seen", script, kind, file=str(tmp_path / "steps"))
    run(tmp_path / "unseen", script, kind)
    files = sorted(path.name for path in (tmp_path / "seen").iterdir())
    assert files == ["ckpt-2.pt", "ckpt-4.pt", "ckpt-6.pt"]
    assert all((tmp_path / "seen" / name).read_bytes() == (tmp_path / "unseen" / name).read_bytes() for name in files)
