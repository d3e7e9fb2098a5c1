"""Plugins: names without imports, targets from files, third-party packages, and clear words for what is broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from chaosckpt import plugins
from chaosckpt.campaign import judging
from chaosckpt.errors import PluginError, UsageError
from chaosckpt.model.fault import Fault
from chaosckpt.oracle import Invariant
from tests.oracle.command_journals import killed_in_save_4
from tests.oracle.journals import interrupted

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "docs" / "how-to" / "example-fault"
TARGET = """
from chaosckpt.targets import Done, Target

class Mine(Target):
    def save(self, state, step):
        return Done()

    def recover(self, state, intent):
        return None

class Half(Target):
    def save(self, state, step):
        return Done()

class Other:
    pass
"""


def python(script: str, path: Path, *arguments: str) -> str:
    """What a fresh Python prints that has `path` before everything else."""
    environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}"}
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        check=False,
        cwd=path,
        env=environment,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def install(path: Path, name: str, group: str, **entries: str) -> None:
    """What an installed package is to importlib: a directory with its name, version and entry points."""
    info = path / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[chaosckpt.{group}]\n{lines}")


@pytest.fixture
def target_file(tmp_path: Path) -> Path:
    file = tmp_path / "my_target.py"
    file.write_text(TARGET)
    return file


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages installed by this test, and by it alone."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins.forget()
    yield tmp_path
    plugins.forget()


def test_names_are_listed_without_importing_anything(tmp_path):
    """Listing costs no torch, no Hypothesis and no plugin's own import."""
    install(tmp_path, "odd", "faults", odd="no_such_module:Thing")
    script = """
        import sys
        from chaosckpt import plugins
        names = [plugins.names(group) for group in ("targets", "faults", "invariants")]
        assert "odd" in names[1] and all(list(found) == sorted(found) for found in names), names
        print(*sorted({"torch", "hypothesis", "ray"} & set(sys.modules)))
        """
    assert python(script, tmp_path).split() == []


def test_the_built_in_faults_are_plugins():
    """Every kind in chaosckpt/faults is registered under its tag, by an entry point like anybody's."""
    kinds = plugins.fault_kinds()
    files = {path.stem.replace("_", "-") for path in (ROOT / "chaosckpt" / "faults").glob("*.py")}
    assert set(kinds) == files - {"--init--", "golden-index", "context"}
    assert all(kind.__struct_config__.tag == name for name, kind in kinds.items())
    assert list(kinds) == sorted(kinds)


def test_a_target_from_a_file(target_file):
    """A class in a file is a target, and loading it again gives the very same class."""
    found = plugins.load_target(f"{target_file}:Mine")
    assert found.__name__ == "Mine"
    assert plugins.load_target(f"{target_file}:Mine") is found
    assert sys.modules[found.__module__].__file__ == str(target_file)


def test_every_process_gives_a_file_the_same_module_name(target_file, tmp_path, monkeypatch):
    """The name depends on the path alone, so that what one process pickles another finds; relative paths count as absolute."""
    script = """
        import sys
        from chaosckpt import plugins
        print(plugins.load_target(sys.argv[1]).__module__)
        """
    monkeypatch.chdir(tmp_path)
    here = plugins.load_target("my_target.py:Mine").__module__
    assert python(script, tmp_path, f"{target_file}:Mine").strip() == here


def test_a_target_file_may_import_its_neighbours(tmp_path):
    """What stands beside the file can be imported by it."""
    (tmp_path / "beside_my_target.py").write_text(TARGET)
    (tmp_path / "importing.py").write_text(
        "from beside_my_target import Mine as Base\n\nclass Derived(Base):\n    pass\n"
    )
    assert plugins.load_target(f"{tmp_path / 'importing.py'}:Derived").__name__ == "Derived"


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("no_such_file.py:Mine", "there is no file no_such_file.py"),
        ("{file}:Mein", "has no 'Mein'; did you mean 'Mine'?"),
        ("{file}:Zzz", "has no 'Zzz'; choose one of: Half, Mine, Other"),
        ("{file}", "names no class; write"),
        ("dpc", "did you mean 'dcp'"),
        ("what-is-this-thing", "choose one of: canary-"),
    ],
)
def test_a_name_that_is_wrong_is_told_the_near_ones(target_file, use, words):
    """A user who mistypes gets one sentence with the value and the next step, and nothing else."""
    with pytest.raises(UsageError) as raised:
        plugins.load_target(use.format(file=target_file))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not isinstance(raised.value, PluginError)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [("Other", "the class Other, not a subclass of chaosckpt.targets.Target"), ("Half", "defines no recover")],
)
def test_a_class_that_is_no_target_is_refused(target_file, wanted, words):
    """Before any process is started it is said what the class lacks."""
    with pytest.raises(PluginError, match=words):
        plugins.load_target(f"{target_file}:{wanted}")


@pytest.mark.parametrize("line", ["import no_such_module_at_all", "raise SystemExit(2)", "def broken(:"])
def test_a_file_that_can_not_be_imported_says_why(tmp_path, line):
    """Whatever the file raises comes out as one sentence, and a corrected file can be loaded in the same process."""
    file = tmp_path / "breaking.py"
    file.write_text(line)
    with pytest.raises(PluginError, match=r"breaking.py can't be imported: \w+: .*; run `python "):
        plugins.load_target(f"{file}:Mine")
    file.write_text(TARGET + "\n# corrected, and of another length\n")
    assert plugins.load_target(f"{file}:Mine").__name__ == "Mine"


def test_a_broken_plugin_is_named(installed):
    """The sentence says which package to fix or uninstall."""
    install(installed, "broken", "faults", broken_kind="no_such_module:Kind")
    with pytest.raises(
        PluginError, match=r"fault 'broken-kind' .* of broken 1.0: ModuleNotFoundError: .*; fix or uninstall it"
    ):
        plugins.fault_kinds()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("json:JSONDecoder", "is not a subclass of chaosckpt.model.fault.Fault"),
        ("chaosckpt.faults.sigkill:Sigkill", "has the tag 'sigkill'"),
    ],
)
def test_what_is_no_fault_kind_is_refused(installed, value, words):
    """An entry point must name a Fault, under its tag: schedules are stored by it."""
    install(installed, "odd", "faults", odd_kind=value)
    with pytest.raises(PluginError, match=words):
        plugins.fault_kinds()


def test_two_plugins_with_one_name_are_refused(installed):
    """Which of them would be meant can't be told, so neither is taken."""
    install(installed, "second", "targets", dcp="json:JSONDecoder")
    with pytest.raises(PluginError, match=r"two plugins provide the target 'dcp': .*; uninstall one of them"):
        plugins.names("targets")


def test_invariants_are_loaded_as_they_are(installed):
    """An invariant is whatever object its entry point names; the oracle knows what to make of it."""
    install(installed, "odd", "invariants", odd_one="json:JSONDecoder")
    assert plugins.invariants()["odd-one"] is json.JSONDecoder


THIRD_PARTY = """
from chaosckpt.oracle import Invariant, NotJudged

def of_target(view):
    return NotJudged("this test judges no target")

def of_command(view):
    last = len(view.journal.events) - 2
    return [
        view.violation("never-whole", f"Attempt {attempt.number} was launched.", attempt=attempt.number, error_type="launched",
                       evidence=[last], expected="none", seen="one")
        for attempt in view.attempts[-1:]
    ]

never_whole = Invariant("never-whole", "no attempt is launched", of_target, of_command)
"""


def test_an_installed_invariant_judges_commands_and_targets(installed):
    """What a third party's package registers is asked of a command's trials as of a target's, and comes after the built-in ones."""
    (installed / "third_party_invariant.py").write_text(THIRD_PARTY)
    install(installed, "third", "invariants", never_whole="third_party_invariant:never_whole")
    command = killed_in_save_4().attempt(closing=True).says_resumed(2).saves(4, 6).finishes()
    verdict = judging.check(command.scenario, command.journal())
    assert verdict.primary is not None
    assert (verdict.primary.invariant, verdict.primary.attempt) == ("never-whole", 1)
    assert "never-whole: Attempt 1 was launched." in judging.explain(command.scenario, command.journal())
    target = interrupted().recovers(2).ends_well()
    assert judging.check(target.scenario, target.journal()).outcome == "pass"
    assert "this test judges no target" in judging.explain(target.scenario, target.journal())


def test_the_invariant_of_the_how_to_page():
    """The code of docs/how-to/write-an-invariant.md judges targets and commands."""
    page = (ROOT / "docs" / "how-to" / "write-an-invariant.md").read_text(encoding="utf-8")
    names: dict[str, Invariant] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    command = killed_in_save_4().attempt(closing=True).says_resumed(2).hangs()
    target = interrupted().recovers(2).exits(by="harness").ends("hung", confirmed=True)
    for trial in (command, target):
        verdict = trial.verdict(names["never_hangs"])
        assert verdict.primary is not None
        assert [found.invariant for found in (verdict.primary, *verdict.others)] == ["progress", "never-hangs"]


def test_what_is_no_invariant_is_refused_before_it_judges(installed):
    """An entry point that names something else is told with what it names and what to do."""
    install(installed, "odd", "invariants", odd_one="json:JSONDecoder")
    trial = interrupted().recovers(2).ends_well()
    with pytest.raises(
        PluginError, match=r"invariant 'odd-one' is a type, no chaosckpt.oracle.Invariant; .*uninstall it"
    ):
        judging.check(trial.scenario, trial.journal())


DRAWING = """
from chaosckpt import plugins
from chaosckpt.model.fault import Errno
from chaosckpt.model.fault import Memory
from chaosckpt.model.operation import Operation
from chaosckpt.model.schedule import decode, encode
from chaosckpt.strategies import draw
from tests.strategies import dcp_model

kinds = plugins.fault_kinds()
assert issubclass(kinds["not-yet-readable"], object) and len(kinds) > 5
census, scenario = dcp_model.census(), dcp_model.scenario()
schedules = [draw(1, index, scenario, census, kinds) for index in range(0, 600, 2)]
assert all(decode(encode(schedule), kinds.values()) == schedule for schedule in schedules)
found = [fault for schedule in schedules for fault in schedule.faults if fault.kind == "not-yet-readable"]
assert found, "never drawn"
for fault in found:
    memory, address = Memory(), fault.at.address
    again = [fault.decide(Operation(address=address, sequence=0, raw=address.path), memory) for _ in range(fault.times + 1)]
    assert again == [Errno(13)] * fault.times + [None] and memory.took_effect
    assert fault.accepts(address.op) and all(simpler.times < fault.times for simpler in fault.simpler())
print(found[0].describe())
"""


def test_the_example_of_the_how_to_page(tmp_path):
    """The package of docs/how-to/write-a-fault.md installs, is found by its entry point, drawn, stored, and takes effect."""
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)], check=True)
    assert "refused with EACCES, starting with rank " in python(DRAWING, site)


@pytest.mark.parametrize("name", ["not_yet_readable.py", "pyproject.toml"])
def test_the_how_to_page_shows_the_example_as_it_is(name):
    """The page can't drift from the package that is tested."""
    page = (ROOT / "docs" / "how-to" / "write-a-fault.md").read_text(encoding="utf-8")
    assert (EXAMPLE / name).read_text(encoding="utf-8").strip() in page


def test_the_how_to_page_names_what_a_kind_can_override():
    """Every method and class attribute that a kind may define is on the page."""
    page = (ROOT / "docs" / "how-to" / "write-a-fault.md").read_text(encoding="utf-8")
    own = {name for name in vars(Fault) if not name.startswith("_")} - {"kind", "to_builtins", "describe"}
    assert sorted(name for name in own if f"`{name}`" not in page) == []
