"""A finding's reproduce.py as somebody runs it who has only the folder: status 1 while the fault is there, 0 once it is mended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from chaosckpt import oracle
from chaosckpt.campaign import investigation
from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.investigation import Investigator
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.preparation import deadlines_of, prepare
from chaosckpt.campaign.reproduce import _scenario_of as scenario_of_finding
from chaosckpt.campaign.store import TrialRecord
from chaosckpt.engine.subjects import subject_of
from chaosckpt.faults.cut import Cut
from chaosckpt.model.fault import Trigger
from chaosckpt.model.scenario import Scenario, TargetSettings, TopologySettings, WorkloadSettings
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.plugins import fault_kinds
from chaosckpt.scenario.load import read

SCRIPTS = Path(__file__).parents[2] / "scenarios" / "scripts"
IN_PLACE = '''"""Writes each step in place; takes the newest directory for a checkpoint, whole or not."""
import torch
from chaosckpt.targets import CheckpointError, Chosen, Done, Nothing, Target


class InPlace(Target):
    guarantees = frozenset({"process-crash"})

    def save(self, state, step):
        """Write this rank's file."""
        path = self.shared / f"step-{step}" / f"rank-{self.rank}.pt"
        self.on_rank_zero("making the directory", lambda: path.parent.mkdir(exist_ok=True))
        value = {"shared": state.state_dict(), "own": state.rank_state_dict()}
        self.together(f"writing {path}", lambda: torch.save(value, path))
        return Done("shared")

    def recover(self, state, intent):
        """Load the newest step."""
        for step in self.retained()[::-1][:TRIED]:
            try:
                self.load(state, step)
            except CheckpointError:
                continue
            return Chosen(state.step)
        return self.nothing(intent, str(self.shared / "step-*"))

    def retained(self):
        names = self.on_rank_zero("listing", lambda: [path.name for path in self.shared.glob("step-*")])
        return sorted(int(name.removeprefix("step-")) for name in names)

    def load(self, state, step):
        path = self.shared / f"step-{step}" / f"rank-{self.rank}.pt"
        from my_library import files

        value = self.together(f"loading {path}", lambda: files.load(path))
        state.load_state_dict(value["shared"])
        state.load_rank_state_dict(value["own"])


TRIED = 1
'''
LIBRARY = {"my_library/__init__.py": "", "my_library/files.py": "import torch\nload = torch.load\n"}
"""Beside the code under test, which is not to be tried without it."""


def with_library(directory: Path) -> None:
    for name, text in LIBRARY.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)


def found(scenario: Scenario, directory: Path, path: str, step: int) -> Path:
    """The folder of the finding that the first write to a file in the save of a step gives when the job is cut before it."""
    (directory / "run").mkdir()
    prepared = prepare(scenario)
    subject = subject_of(scenario, prepared)
    scenario = subject.scenario
    address = next(
        point.address
        for point in prepared.census.main.points
        if (point.address.op, point.address.path, point.label.step) == ("write", path, step)
    )
    schedule = Schedule((AttemptPlan((Cut((Trigger(address),)),)),))
    arena = subject.open_arena()
    try:
        deadlines = deadlines_of(prepared.census)
        executor = Executor(subject, arena, deadlines, SharedExclusiveLock(), lambda trial, event: None)
        executed = executor.run(schedule, "1:0")
        assert executed.verdict.outcome == "violation", executed.verdict
        options = FuzzOptions(scenario=scenario, run=str(directory / "run"), trials=1)
        investigator = Investigator(options, prepared.census, fault_kinds(), lambda progress: None)
        cause = oracle.root_cause(executed.journal, executed.verdict)
        record = TrialRecord(index=0, trial="1:0", outcome="violation", cause=cause)
        with pytest.MonkeyPatch.context() as patch:  # what is shrunk and how often it is replayed is not asked here
            for name in ("CONFIRMATIONS", "REPLAYS"):
                patch.setattr(investigation, name, 1)
            patch.setattr(investigation, "CAP", 0)
            investigator.investigate(executor, record, schedule, executed)
        (summary,) = investigator.summaries([record])
    finally:
        arena.close()
    assert not list((directory / "run" / "replays" / "storage").glob("*/*")), "copies of storage are left in the run"
    return Path(summary.path)


def reproduce(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script from elsewhere, without the run's cache; every import of every process is on standard error."""
    return subprocess.run(
        [sys.executable, str(folder / "reproduce.py"), *arguments],
        cwd="/",
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("target")
    (directory / "mine.py").write_text(IN_PLACE)
    with_library(directory)
    scenario = Scenario(
        name="mine",
        target=TargetSettings(use=f"{directory / 'mine.py'}:InPlace"),
        topology=TopologySettings(ranks=((2,),)),
        workload=WorkloadSettings(steps=4, save_every=2),
    )
    return found(scenario, directory, "shared:step-4/rank-1.pt", 4)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("command")
    scenario = read(SCRIPTS / "plain-in-place.toml")
    assert scenario.command is not None
    text = (SCRIPTS / "plain_in_place.py").read_text().replace("torch.load(", "my_library.files.load(")
    (directory / "plain_in_place.py").write_text(text.replace("import re\n", "import re\nimport my_library.files\n"))
    with_library(directory)
    argv = tuple("plain_in_place.py" if word.endswith(".py") else word for word in scenario.command.argv[1:])
    settings = msgspec.structs.replace(scenario.command, argv=(sys.executable, *argv), directory=str(directory))
    return found(msgspec.structs.replace(scenario, command=settings), directory, "out:ckpt-4.pt", 4)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Where a folder can be changed."""
    return tmp_path / "finding"


def test_a_targets_recovery_fails_on_the_stored_files(target):
    """Goal: two ranks recover in plain processes; nothing that injects, traces or launches is imported; what is checked is said."""
    done = reproduce(target)
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    assert "InPlace.recover must resume from step 2" in done.stdout.splitlines()[0]
    assert done.stdout.count("CheckpointError: ") >= 2
    assert "although step 2 had been saved and acknowledged" in done.stdout.splitlines()[-1]
    assert "chaosckpt.targets.api" in done.stderr
    for part in ("engine", "campaign", "faults", "oracle", "strategies", "report"):
        assert f"chaosckpt.{part}" not in done.stderr


def test_a_mended_target_is_told_from_a_broken_one(target, copy):
    """Goal: from the folder alone, the file named on the command line is tried; it goes back to the step before, whole."""
    mended = copy.with_name("mended.py")
    mended.write_text(IN_PLACE.replace("TRIED = 1", "TRIED = 9"))
    shutil.copytree(target, copy)
    (copy / "scenario.toml").unlink()  # which names the file's original place: whoever is sent the folder has none
    (copy / "mine.py").unlink()
    done = reproduce(copy, str(mended))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "Chosen(step=2)" in done.stdout
    assert done.stdout.splitlines()[-1] == "The fault is not there."


@pytest.mark.parametrize("kind", ["target", "command"])
def test_elsewhere_the_code_in_the_folder_is_replayed_with_all_that_it_imports(kind, copy, request):
    """Goal: where the original code is gone, or a module of it, it is the copy that is tested, and its imports are found beside it."""
    folder = request.getfixturevalue(kind)
    shutil.copytree(folder, copy)
    assert {str(path.relative_to(copy / "code")) for path in (copy / "code").rglob("*.py")} > set(LIBRARY)
    assert "`code/`" in (copy / "README.md").read_text()
    original = folder.parents[2]
    assert subject_of(scenario_of_finding(copy)).sources().roots[0].parent == original
    moved = original / "my_library" / "files.py"
    moved.rename(moved.with_suffix(".moved"))
    try:
        lacking = subject_of(scenario_of_finding(copy)).sources()
    finally:
        moved.with_suffix(".moved").rename(moved)
    text = (copy / "scenario.toml").read_text()
    (copy / "scenario.toml").write_text(text.replace(str(original), "/gone"))
    gone = subject_of(scenario_of_finding(copy)).sources()
    for found in (lacking, gone):
        assert found.roots[0].parent == copy / "code"
        assert found.files["my_library.files"] == copy / "code" / "my_library" / "files.py"
    if kind == "command":  # a mended target is tried with the copied library, too
        done = reproduce(copy)
        assert done.returncode == 1, done.stdout + done.stderr[-2000:]
        assert "ModuleNotFoundError" not in done.stdout


def test_without_its_storage_the_script_tells_nothing(target, copy):
    """Goal: status 2, which is neither the fault nor its absence."""
    copy.mkdir()
    shutil.copy(target / "reproduce.py", copy)
    assert reproduce(copy).returncode == 2


def test_a_commands_script_runs_the_plain_command(command, copy):
    """Goal: the torn file fails the script as it is, without chaosckpt; with an intact one in its place it comes to its end."""
    done = reproduce(command)
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "The fault is there: it ended with status 1, although step 2 had been saved."
    assert "chaosckpt" not in done.stderr.replace(str(command), "")
    shutil.copytree(command, copy)
    out = copy / "storage" / "out"
    assert (out / "ckpt-4.pt").stat().st_size < (out / "ckpt-2.pt").stat().st_size
    shutil.copy(out / "ckpt-2.pt", out / "ckpt-4.pt")
    mended = reproduce(copy)
    assert mended.returncode == 0, mended.stdout + mended.stderr[-2000:]
    assert "resumed from step 2" in mended.stdout


@pytest.mark.parametrize("kind", ["target", "command"])
def test_the_pages_tell_the_finding_as_a_person_would(kind, request):
    """Goal: the issue can be sent: story, listing and code are there, and no address, no path and no word of the harness's."""
    folder = request.getfixturevalue(kind)
    issue, readme = (folder / "ISSUE.md").read_text(), (folder / "README.md").read_text()
    assert str(folder.parents[2]) not in issue
    assert "while saving step 4" in issue
    assert "torch.save(" in issue
    assert "PyTorch version: " in issue
    assert "`reproduce.py`" in issue
    for word in ("incarnation", "attempt", "newest-complete", "rank.py", "shared:", "out:"):
        assert word not in issue, word
    written = {"target": "| step-4/rank-1.pt | 0 | the save of step 4, which was interrupted |",
               "command": "| ckpt-4.pt | 0 | the save of step 4, which was interrupted |"}  # fmt: skip
    assert written[kind] in issue
    assert "1 trial of this campaign has this root cause" in readme
    assert readme.count("(incarnation 1, main)`") == 1
    assert "target: \n" not in readme
    assert "    python reproduce.py" in readme
