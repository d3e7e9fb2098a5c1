"""`script`: trials a minute of unmodified commands in forks of a warm interpreter, against starting them cold twice a trial."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import cpu
from benchmarks.result import Result, Settings, Target, number
from chaosckpt.scenario.load import shipped_directory

TARGET = Target("at least", 15.0)
SIGNS = ("--resumed", r"resumed from step (\d+)", "--saved", r"saved step (\d+)")
_CLEAN, _VIOLATIONS = 0, 1


def measure(settings: Settings) -> Iterator[Result]:
    """Campaigns of some trials, and the same commands started cold, twice for each trial, in one run."""
    trials = settings.times(usual=120, quick=24)
    python = [sys.executable, _script("plain_replace.py")]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", _script("ddp_rank0_rename.py")]
    yield _against_cold(
        "a script with three saves",
        [*python, "--out"],
        trials,
        max(2, trials // 30),
        ("--checkpoints", "{out}/ckpt-*.pt"),
    )
    yield _against_cold("two ranks of DDP under torchrun", [*torchrun, "--out"], trials, max(1, trials // 60))


def _against_cold(what: str, words: Sequence[str], trials: int, cold_trials: int, more: Sequence[str] = ()) -> Result:
    """A campaign about the command of these words, to which `{out}` is added, against the loop that everyone writes first."""
    with tempfile.TemporaryDirectory(prefix="chaosckpt-benchmark-") as directory:
        cold = _cold_trials_a_minute(words, Path(directory), cold_trials)
        arguments = [
            "fuzz", "--trials", str(trials), "--workers", "2", "--json", *more, *SIGNS, "--run-dir", f"{directory}/run"
        ]  # fmt: skip
        ran = cpu.run(cpu.chaosckpt(*arguments, "--", *words, "{out}"), expected=(_CLEAN, _VIOLATIONS))
        summary = json.loads(ran.output)
    return number(
        "script",
        f"fuzz of {what}, {trials} trials by 2 workers, against a cold start twice a trial",
        [summary["rate_per_minute"] / cold],
        "x",
        TARGET,
        trials=summary["trials"],
        violations=summary["violations"],
        inconclusive=summary["inconclusive"],
        warm_trials_per_minute=summary["rate_per_minute"],
        cold_trials_per_minute=cold,
    )


def _script(name: str) -> str:
    return str(shipped_directory() / "scripts" / name)


def _cold_trials_a_minute(words: Sequence[str], directory: Path, trials: int) -> float:
    """The usual loop: start the command, and start it again to see it resume."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", TMPDIR=str(directory))  # torchrun leaves directories there
    started = time.monotonic()
    for trial in range(trials):
        (directory / f"cold-{trial}").mkdir()
        for _ in range(2):
            cpu.run([*words, str(directory / f"cold-{trial}")], environment=environment)
    return 60 * trials / (time.monotonic() - started)
