"""Mutated inputs: whatever is stored or typed is read, or refused in one sentence, and never ends in a traceback.

The stored run is a real one, of six trials with a finding. `python -m tests.cli.test_mutated_inputs N [SEED]` tries N mutations by
hand; the suite tries some. A new format is stored anew by `tar` over the directory of such a run.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec
import pytest

from chaosckpt.campaign import finding_store, journals, options, reproduce
from chaosckpt.campaign.store import TrialLog
from chaosckpt.cli.failure import guarded
from chaosckpt.cli.main import group
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.errors import ChaosckptError, HarnessError, UsageError
from chaosckpt.faults.context import FaultContext
from chaosckpt.measure import comparison
from chaosckpt.model import formats
from chaosckpt.model.census import Census
from chaosckpt.plugins import fault_kinds
from chaosckpt.scenario import load as scenario
from chaosckpt.strategies import CensusIndex

STORED = Path(__file__).with_name("data") / "run.tar.xz"
IN_SUITE = 300
BATCHES = 6
WORDS = [
    b"null",
    b"-1",
    b"1e999",
    b'"\xff"',
    b"[]",
    b"{}",
    b"true",
    b'""',
    b"99999999999999999999",
    b"\x00",
    b'"\\ud800"',
    b"[[[[",
]
OPTIONS = [
    "--trials",
    "--seed",
    "--json",
    "--minutes",
    "--run-dir",
    "--resume",
    "--explain",
    "--times",
    "--trial",
    "--scenario",
    "--workers",
]
VALUES = [
    "",
    "-1",
    "0",
    "1e9",
    "nan",
    "\udcff",
    "a" * 5000,
    "1:1",
    "{out}",
    "/",
    "\n",
    "--",
    "..",
    "[",
    "dcp",
    "file.py:",
    ":X",
    "%s",
]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """One change of a kind that torn disks, editors and other versions make."""
    at = chance.randrange(len(content) + 1)
    match chance.randrange(8):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + chance.choice(WORDS) + content[at:]
        case 3:
            end = min(len(content), at + chance.randrange(1, 200))
            return content[:at] + content[end:]
        case 4:
            return content[:at] + b"[" * 100_000 + content[at:]
        case 5:
            return replaced_value(content, chance)
        case 6:
            return replaced_value(replaced_value(content, chance), chance)
        case _:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(200)))


def replaced_value(content: bytes, chance: random.Random) -> bytes:
    """Another value behind some colon or equals sign."""
    places = [i + 1 for i, byte in enumerate(content) if byte in b":="]
    if not places:
        return content
    at = chance.choice(places)
    end = min((i for i in (content.find(mark, at) for mark in (b",", b"}", b"\n")) if i >= 0), default=len(content))
    return content[:at] + b" " + chance.choice(WORDS) + content[end:]


def read_stored(run: Path, called: Callable[..., None]) -> dict[str, Callable[[], object]]:
    """What reads each kind of stored file of a run: file -> the reader. `called` is given the arguments of a command line."""
    (folder,) = (run / "findings").iterdir()
    name = f"findings/{folder.name}"
    return {
        ".chaosckpt-run": lambda: called("judge", str(run)),
        "options.json": lambda: one_by_one(lambda: called("judge", str(run)), lambda: options.load(run)),
        "trials.jsonl": lambda: list(TrialLog(run).read()),
        "summary.json": lambda: called("judge", str(run), "--json"),
        "journals/worker-0.jsonl": lambda: one_by_one(
            lambda: called("judge", str(run), "--explain", "1:1"), lambda: list(journals.read(run))
        ),
        "journals/worker-1.jsonl.gz": lambda: list(journals.read(run)),
        "census.json": lambda: used(run / "census.json"),
        f"{name}/finding.json": lambda: one_by_one(
            lambda: called("reproduce", str(folder), "--times", "1"), lambda: finding_store.read(folder)
        ),
        f"{name}/scenario.toml": lambda: one_by_one(
            lambda: called("reproduce", str(folder)), lambda: scenario.read(folder / "scenario.toml")
        ),
        f"{name}/census.json": lambda: called("reproduce", str(folder), "--json"),
        "measurement.json": lambda: comparison.read(run / "measurement.json"),
    }


def one_by_one(*calls: Callable[[], object]) -> None:
    for call in calls:
        call()


def used(census: Path) -> None:
    """A census that can be read must be one that can be drawn from."""
    found = formats.read_json(census.read_bytes(), Census)
    if not found.runs:
        raise UsageError("a census without any golden run")
    index = CensusIndex(found)
    context = FaultContext(scenario=scenario.find("dcp-overwrite"), census=found, golden=index.main)
    for kind in fault_kinds().values():
        kind.strategy(context)


def called(*arguments: str) -> None:
    """A command line, in this process: it ends with a documented status, and says one sentence where it refuses."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        try:
            guarded(group, list(arguments))
        except SystemExit as ended:
            code = ended.code
    words = said.getvalue()
    assert code in (0, 1, 2, 3), (arguments, code, words)
    assert "this is a bug" not in words, (arguments, words)
    assert "Traceback" not in words, (arguments, words)
    assert code in (0, 1) or words.strip(), (arguments, code)


@contextmanager
def without_replays() -> Iterator[None]:
    """Reading is tried here, not running: what would start processes ends at once."""

    def refuse(*arguments: object, **more: object) -> None:
        raise HarnessError("nothing is run in this test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "prepare", refuse)
        patch.setattr(TargetSubject, "open_arena", refuse)
        yield


def try_files(run: Path, count: int, seed: int, commands_every: int = 1) -> None:
    """So many mutations of the files of a run, each read and put back; only every so many by a whole command, which takes long."""
    chance = random.Random(seed)
    kinds = len(read_stored(run, called))
    for number in range(count):
        whole = number // kinds % commands_every == 0
        readers = read_stored(run, called if whole else lambda *arguments: None)
        name = list(readers)[number % len(readers)]
        path = run / name
        content = path.read_bytes()
        changed = mutated(content, chance)
        path.write_bytes(changed)
        try:
            readers[name]()
        except (ChaosckptError, msgspec.DecodeError):
            pass  # refused
        except Exception as error:
            raise AssertionError(
                f"{name} after mutation {number} of seed {seed}: {error!r}, of {len(changed)} bytes"
            ) from error
        finally:
            path.write_bytes(content)


def try_arguments(run: Path, count: int, seed: int) -> None:
    """So many command lines of commands that only read, with options and values that nobody would type."""
    chance = random.Random(seed)
    for _ in range(count):
        command = chance.choice(["judge", "reproduce", "list", "init"])
        words = [chance.choice([*OPTIONS, *VALUES, str(run)]) for _ in range(chance.randrange(4))]
        if command == "init":
            words = [word for word in words if word.startswith("--")]
        called(command, *words)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored run, unpacked."""
    return unpacked(tmp_path_factory.mktemp("stored"))


def unpacked(place: Path) -> Path:
    with tarfile.open(STORED) as archive:
        archive.extractall(place, filter="data")
    (found,) = place.iterdir()
    plain = found / "journals" / "worker-1.jsonl"  # as they were written once; now they are compressed
    plain.with_suffix(".jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return found


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_changed_file_is_read_or_refused(run: Path, batch: int) -> None:
    """Goal: torn, edited and foreign files of every stored format end in a value or in one sentence."""
    with without_replays():
        try_files(run, IN_SUITE // BATCHES, batch, commands_every=3)


def test_odd_command_lines_are_refused(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: options in odd places, with odd values, end with a documented status and one sentence."""
    monkeypatch.chdir(tmp_path)
    with without_replays():
        try_arguments(run, 40, 1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, without_replays():
        stored = unpacked(Path(place))
        os.chdir(place)  # `init` writes where it stands
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
        try_files(stored, int(sys.argv[1]), first)
        try_arguments(stored, int(sys.argv[1]) // 10, first)
        shutil.rmtree(stored)
