"""`chaosckpt drill`: what can't be drilled is refused in one sentence, and a drill leaves nothing but its certificate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from chaosckpt.drill.certificate import Certificate
from chaosckpt.model.journal import Recovered, decode

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[2]
SMALL = """
name = "small"
[target]
use = "torch-save-atomic"
[workload]
steps = 4
layers = 1
[topology]
ranks = [[1]]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL + "[drill]\ninterruptions = 2\n")
    return path


@pytest.mark.parametrize(
    ("drill", "words"),
    [
        ("restore_ranks = [[1]]", "drill.restore_ranks has [1], the topology that saves"),
        ("restore_ranks = [[0]]", "drill.restore_ranks has [0]: a topology needs at least one node"),
        ("restore_ranks = [[5000]]", "5000 ranks"),
        ("restore_ranks = [2]", "such as [[1], [2, 1]]"),
        ('restore_python = "python3.13"', "drill.restore_python = 'python3.13' is not an absolute path"),
        ('restore_python = "/nowhere/bin/python"', "drill.restore_python = '/nowhere/bin/python' is not a file"),
        ('restore_python = "/bin/true"', "'/bin/true' exited with status 0 but did not run the imports of a rank"),
        ('restore_python = "/etc/passwd"', "is not executable for this user"),
        ('environment = ["HOME=/root"]', "'HOME=/root', which is no name of an environment variable"),
        ('environment = ["TMPDIR"]', "'TMPDIR', which chaosckpt sets"),
        ("interruptions = 0", "drill.interruptions = 0 must be from 1 to 100"),
        ("tolerance = -1.0", "drill.tolerance = -1.0 must be a number of 0 or more"),
        ("tolerance = 0.1", "needs drill.tolerance_reason"),
        ("intervals = 3", "interruptions"),
    ],
)
def test_what_cannot_be_drilled_is_refused(run, tmp_path, drill, words):
    """One sentence with the value, before anything is started; exit code 2."""
    path = tmp_path / "bad.toml"
    path.write_text(f"{SMALL}[drill]\n{drill}\n")
    result = run("drill", str(path))
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing-of-that-name",), "'nothing-of-that-name' is neither a scenario file nor a shipped scenario"),
        (("dcp", "--html", "/nowhere/page.html"), "there is no directory /nowhere"),
        (("dcp", "--html", "/tmp"), "it is a directory"),
    ],
)
def test_what_cannot_be_found_or_written_is_refused(run, arguments, words):
    """So are unknown scenarios, and a page that could not be written at the end."""
    result = run("drill", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_a_storage_directory_that_is_not_there_is_refused(run, tmp_path):
    """The sentence names the key and the value."""
    path = tmp_path / "bad.toml"
    path.write_text(f'{SMALL}[storage]\nshared = "/nowhere/at/all"\n')
    result = run("drill", str(path))
    assert result.code == 2
    assert "storage.shared = '/nowhere/at/all' is not a directory" in result.err


@pytest.fixture
def temporary(tmp_path) -> Iterator[Path]:
    """A temporary directory for a drill in a process of its own: afterwards it is empty, and no process is left that has it."""
    place = tmp_path / "temporary"
    place.mkdir()
    yield place
    assert list(place.iterdir()) == []
    assert left_behind(place) == []


def left_behind(place: Path) -> list[int]:
    """Processes whose environment or arguments name this directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(place) in told and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def started(temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "chaosckpt", "drill", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=temporary.parent,
        env={
            **os.environ,
            "TMPDIR": str(temporary),
            "PYTHONPATH": path,
            "XDG_CACHE_HOME": str(temporary.parent / "cache"),
        },
    )


def test_json_is_one_object_and_the_page_is_written(scenario, temporary, tmp_path):
    """Exit code 0; standard output is the certificate and nothing else, progress goes to standard error."""
    page = tmp_path / "certificate.html"
    run = tmp_path / "run"
    process = started(temporary, str(scenario), "--json", "--html", str(page), "--run-dir", str(run))
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told.pop("held") is True
    certificate = msgspec.convert(told, Certificate)
    assert [step.number for step in certificate.steps if step.held] == [1, 2, 3, 4, 5]
    assert "Restart certificate of small" in page.read_text()
    assert "drill: restoring" in err
    assert msgspec.json.decode((run / "certificate.json").read_bytes(), type=Certificate) == certificate
    journals = [path.read_bytes().splitlines() for path in sorted((run / "journals").iterdir())]
    assert len(journals) == 1 + len(certificate.interruptions)
    number = int(certificate.steps[2].evidence[0].partition(" ")[0].removeprefix("#"))
    assert isinstance(decode(journals[0][number]), Recovered)
    assert (run / "certificate.html").read_text() == page.read_text()


@pytest.mark.parametrize(
    ("at", "sent"),
    [("drill: restoring", signal.SIGTERM), ("drill: interrupting a save, 1 of 2", signal.SIGINT)],
)
def test_an_interrupt_leaves_nothing_behind(scenario, temporary, at, sent):
    """Ctrl-C and SIGTERM, in any part of a drill, end it with exit code 130, without a process, a file or a certificate."""
    process = started(temporary, str(scenario))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(at):
            break
    process.send_signal(sent)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
