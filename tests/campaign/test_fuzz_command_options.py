"""Campaigns about commands that need a flag to resume, and about results that another command tells."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.campaign.test_fuzz_command import SIGNS, chaosckpt, script
from tests.engine.scripts import COUNTING

ON_REQUEST = COUNTING.replace("if done else 0", 'if done and "--resume" in sys.argv else 0')
LOSS = COUNTING.replace("import os,", "import random, os,").replace(
    'file.write("6")', 'file.write(str(6.0 + random.random() / 1000 + LOST * (step_at_start == 4)))'
).replace("while step < 6:", "step_at_start = step\nwhile step < 6:")  # fmt: skip
"""Its result differs a little each time; with LOST, also by where it was resumed."""


def fuzz(directory: Path, text: str, *options: str, trials: int = 6) -> tuple[int, dict[str, object]]:
    done = chaosckpt(
        directory, "fuzz", "--trials", str(trials), "--workers", "1", "--json", *options, *script(directory, text)
    )
    assert done.stdout, done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout)


def test_a_script_that_resumes_on_request(tmp_path: Path) -> None:
    """Goal: with --resume-args it is told to resume once something was saved, and held to it; without it a fresh start isn't judged."""
    code, told = fuzz(tmp_path, ON_REQUEST, *SIGNS, "--resume-args", "--resume")
    assert (code, told["violations"]) == (0, 0), told
    code, alone = fuzz(tmp_path, ON_REQUEST, "--checkpoints", "{out}/ckpt-*")
    assert (code, alone["violations"]) == (0, 0), alone
    torn = ON_REQUEST.replace('open(f"{out}/new", "w")', 'open(f"{out}/ckpt-{step}", "w")').replace(
        '        os.replace(f"{out}/new", f"{out}/ckpt-{step}")\n', ""
    )
    code, found = fuzz(tmp_path, torn, *SIGNS, "--resume-args", "--resume", trials=10)
    assert code == 1, found


@pytest.mark.parametrize("lost", [0, 1])
def test_a_number_that_a_command_prints_is_the_result(tmp_path: Path, lost: int) -> None:
    """Goal: --result-cmd compares within --tolerance where bytes differ from run to run, and only a larger difference is found."""
    command = f"{sys.executable} -c \"print(open('{{out}}/final').read())\""
    options = [*SIGNS[:6], "--result-cmd", command, "--tolerance", "0.01"]
    code, told = fuzz(tmp_path, LOSS.replace("LOST", str(lost)), *options, trials=8)
    assert code == lost, told
    broken = {finding["invariant"] for finding in told["findings"]}  # type: ignore[attr-defined]
    assert broken == ({"result-equal"} if lost else set())
