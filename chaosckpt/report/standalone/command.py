"""The reproduce.py of a command's finding: the plain command on the stored files, without faults and without chaosckpt.

The generator fills CASE in and puts the basis's functions in the place of its import. Standard library only.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from chaosckpt.report.standalone.basis import HERE, lay_out, names_a_checkpoint, scenario_beside

CASE: dict[str, Any] = {}


def main() -> int:
    """Run the command on the stored files and say whether the fault is there: 1 if so, else 0, 2 where it can't be told."""
    print(CASE["claim"])
    with tempfile.TemporaryDirectory(prefix="reproduce-") as folder:
        out = lay_out(CASE, Path(folder))["out"]
        status, output = run(out)
        print(output, end="")
        if status == 127:
            return 2
        fault = fault_in(CASE, status, output, lambda: result_in(out))
    print(f"The fault is there: {fault}." if fault else "The fault is not there.")
    return 1 if fault else 0


def run(out: str) -> tuple[int | None, str]:
    """Exit status (None where it was stopped after the time limit) and what was printed."""
    given = [word for word in sys.argv[1:2] if word.endswith(".py")]
    original = Path(str(scenario_beside().get("command", {}).get("directory", "")) or HERE)
    directory = original if all((original / script).is_file() for script in CASE["scripts"]) else HERE
    words = []
    for word in CASE["argv"]:
        if word in CASE["scripts"]:
            # The first argument, the script at its original place, or the copy here.
            places = [*(Path(path).resolve() for path in given), original / word, HERE / CASE["scripts"][word]]
            word = str(next(place for place in places if place.is_file()))
        words.append(sys.executable if word == "{python}" else word.replace("{out}", out))
    environment = dict(os.environ, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1")
    environment.setdefault("OMP_NUM_THREADS", "1")
    if (HERE / "code").is_dir():  # the local modules, where they aren't beside the script
        environment["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(HERE / "code")])
    try:
        process = subprocess.Popen(
            words,
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{words[0]} can't be run: {error}\n"
    try:
        output, _ = process.communicate(timeout=CASE["timeout_seconds"])
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def fault_in(case: dict[str, Any], status: int | None, output: str, result: Any) -> str:
    """What is wrong with how the command ended and with what it said, in words; empty where nothing is."""
    required = case["required"]
    saved = f", although step {required} had been saved" if required is not None else ""
    if status is None:
        return f"it did not end within {case['timeout_seconds']} seconds"
    resumed = [int(step) for step in re.findall(case["resumed"], output)] if case["resumed"] else []
    torn = sorted(set(resumed) & set(case["incomplete"]))
    if torn:
        return f"it resumed from step {torn[0]}, whose checkpoint is not complete"
    if status != 0:
        if required is not None or case["must_end"]:
            return f"it ended with status {status}{saved}"
        unclear = case["must_speak"] and not names_a_checkpoint(output)
        return f"it ended with status {status}, and its error names no checkpoint" if unclear else ""
    if required is not None and case["resumed"]:
        if not resumed:
            return f"it began anew{saved}"
        if max(resumed) < required:
            return f"it resumed from step {max(resumed)}{saved}"
    return "" if case["result"] is None or same(case, result()) else "its result is not that of an uninterrupted run"


def result_in(out: str) -> str:
    """The digest of the result file, or what the result command prints."""
    if CASE["result_file"]:
        path = Path(CASE["result_file"].replace("{out}", out))
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() if path.is_file() else "none"
    words = shlex.split(CASE["result_command"].replace("{out}", shlex.quote(out)))
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def same(case: dict[str, Any], seen: str) -> bool:
    """Whether the result is that of the uninterrupted run; numbers within the tolerance."""
    if case["result_file"] or seen == case["result"]:
        return bool(seen == case["result"])
    try:
        return math.isclose(float(seen), float(case["result"]), rel_tol=0.0, abs_tol=case["tolerance"])
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
