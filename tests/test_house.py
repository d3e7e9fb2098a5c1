"""The house is in order: sizes, words, layers' names, and pages that say what the code says."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

from chaosckpt.cli.main import group
from chaosckpt.model import journal
from chaosckpt.model.scenario import Scenario
from tests import architecture
from tests.architecture import PACKAGE, ROOT
from tests.conftest import LONGEST_FIRST

LONGEST_MODULE, LONGEST_FUNCTION, LARGEST_FOLDER, FRAGMENT = 600, 70, 25, 60
MODULES = architecture.modules()
SOURCES = sorted({*MODULES, *(ROOT / "tests").rglob("*.py")})
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BANNED = re.compile(r"manager|utils?|helpers?|nemesis", re.IGNORECASE)
NOUNS = (
    "Scenario, Subject, Target, Observer, Trajectory, Workload, Topology, Failure group, Guarantee, Stage, Operation, "
    "Census, Trigger, Fault, Injector, Schedule, Trial, Attempt, Journal, Invariant, Verdict, Finding, Campaign, Crash state, Canary"
).split(", ")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_modules_and_functions_are_short(path):
    """No module has more than 600 lines, no function 70 or more."""
    assert len(path.read_bytes().splitlines()) <= LONGEST_MODULE
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 < LONGEST_FUNCTION, node.name


def test_folders_can_be_surveyed():
    """No folder of the package or of its tests has more than 25 Python files."""
    files = Counter(name(path.parent) for path in SOURCES)
    assert {folder: count for folder, count in files.items() if count > LARGEST_FOLDER} == {}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_say_what_they_know(path):
    """Every module begins with a docstring whose first paragraph is a sentence or more."""
    documentation = ast.get_docstring(tree(path)) or ""
    assert documentation.split("\n\n")[0].endswith((".", ":")), "the first paragraph ends like a sentence"


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name.startswith("test_")], ids=name)
def test_tests_open_with_their_goal(path):
    """Every test has a docstring."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            assert ast.get_docstring(node), node.name


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_words(path):
    """No module, class or function bears a name that says nothing; nothing is left to be done later."""
    named = [
        path.stem,
        *(node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef | ast.FunctionDef)),
    ]
    assert not [word for word in named if BANNED.search(word)]
    assert not re.findall(r"\b(?:TODO|FIXME|XXX)\b", path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """The modules of the package that this one imports, at any time and for types only, too."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def started() -> set[str]:
    """Modules that are no part of one importer: plugins, and those that a command line or a file of the package names as a whole."""
    declared = tomllib.loads(text("pyproject.toml"))["project"]
    entries = [
        *declared["scripts"].values(),
        *(v for group in declared["entry-points"].values() for v in group.values()),
    ]
    named = {entry.partition(":")[0] for entry in entries}
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)  # as in [sys.executable, "-m", "chaosckpt.engine.node.server"]
    return named


def test_no_module_is_a_fragment_of_another():
    """A module of fewer than 60 lines has two importers or more; if not, it belongs to the only one, or is started by itself."""
    known = {dotted(path): path for path in MODULES}
    importers: Counter[str] = Counter()
    for module, path in known.items():
        importers.update({name for name in imported(path) if name in known} - {module})
    apart = started()
    fragments = {
        module: len(path.read_bytes().splitlines())
        for module, path in known.items()
        if importers[module] <= 1
        and path.name not in ("__init__.py", "__main__.py")
        and module not in apart
        and not module.startswith("chaosckpt.cli.")  # a command is one file there
        and path.name != "sitecustomize.py"  # Python imports it by this name
        and module
        != "chaosckpt.training.averaging"  # torch compares its annotations with types: they must be evaluated
        and len(path.read_bytes().splitlines()) < FRAGMENT
    }
    assert fragments == {}


def test_no_modules_import_one_another_in_a_circle():
    """Whoever reads a module can read what it imports first."""
    known = {dotted(path): path for path in MODULES}
    graph = {}
    for module, path in known.items():
        names = imported(path)
        # `from package import module` reads the module; the package itself is meant where it defines the name.
        inner = {name.rpartition(".")[0] for name in names if name in known}
        graph[module] = {name for name in names if name in known and name not in inner} - {module}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_one_place_asks_what_the_subject_is():
    """Above the engine and the oracle, the words of a finding alone depend on whether a target or a command is tested."""
    above = {"cli", "drill", "campaign", "measure", "report", "strategies"}
    asks = re.compile(r"\bscenario\.command\b|\.command is ")
    found = [
        name(path)
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in above and asks.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["chaosckpt/report/subject_terms.py"]


def test_the_suite_begins_with_files_that_are_there():
    """What is put first is named as it lies under tests/."""
    assert [path for path in LONGEST_FIRST if not (ROOT / "tests" / path).is_file()] == []


def test_no_path_of_a_machine():
    """No tracked file names the home directory of whoever wrote it, or the checkout in which it was written."""
    listed = (
        subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
        .stdout.decode()
        .split("\0")
    )
    places = re.compile(rf"{re.escape(str(Path.home()))}/|{re.escape(str(ROOT))}/")
    for path in filter(None, listed):
        file = ROOT / path
        if file.is_file():
            assert not places.search(file.read_text(encoding="utf-8", errors="replace")), path


def test_the_map_names_what_is_there():
    """docs/ARCHITECTURE.md has one row for each package, with the first sentence of its docstring; `make map` writes it again."""
    assert architecture.on_page() == architecture.packages(), "run `make map`"


def test_the_glossary_has_every_noun():
    """Each noun of the design stands in the glossary, once."""
    rows = re.findall(r"^\| (?!noun )([^|]+) \|", text("docs/glossary.md"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(NOUNS) <= set(rows)


def scenario_keys(struct: type[msgspec.Struct] = Scenario, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every key of a scenario file as `table.key`, with its default."""
    for field in msgspec.structs.fields(struct):
        kinds = [kind for kind in (field.type, *get_args(field.type)) if isinstance(kind, type)]
        tables = [kind for kind in kinds if issubclass(kind, msgspec.Struct)]
        if tables:
            yield from scenario_keys(tables[0], f"{field.name}.")
        else:
            yield (
                f"{prefix}{field.name}",
                field.default if field.default is not msgspec.NODEFAULT else field.default_factory,
            )


def test_the_reference_has_every_key_of_a_scenario():
    """docs/reference/scenario.md documents each key once, with the default that the code has, and no other key."""
    rows = dict(
        re.findall(r"^\| `([a-z_.]+)` \| [^|]+ \| ([^|]+) \|", text("docs/reference/scenario.md"), re.MULTILINE)
    )
    keys = dict(scenario_keys())
    assert set(rows) == set(keys)
    for key, default in keys.items():
        shown = rows[key].strip("` ")
        if default is msgspec.NODEFAULT:
            assert shown == "required", key
        elif isinstance(default, str | int | float):
            assert shown == msgspec.json.encode(default).decode(), key


def test_the_example_scenarios_on_pages_are_valid():
    """The scenario in the reference has only keys and types that the code knows."""
    for block in re.findall(r"```toml\n(.*?)```", text("docs/reference/scenario.md"), re.DOTALL):
        msgspec.convert(tomllib.loads(block), Scenario)


def commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its path, such as `list census`."""
    if isinstance(command, click.Group):
        for child, found in command.commands.items():
            yield from commands(found, f"{path} {child}".strip())
    if path:
        yield path, command


def test_the_reference_has_every_command_and_option():
    """docs/reference/cli.md names each command and each option, and none that isn't there."""
    page = text("docs/reference/cli.md")
    found = dict(commands(group))
    options = {option for command in found.values() for parameter in command.params for option in parameter.opts}
    options = {option for option in options if option.startswith("--")} - {"--help"}
    for path in found:
        assert re.search(rf"(chaosckpt|`)\s*{path.replace(' ', chr(92) + 's')}\b", page), path
    assert set(re.findall(r"^\| `(--[a-z-]+)`", page, re.MULTILINE)) == options


def test_the_reference_has_every_event():
    """docs/reference/journal.md names each event with each of its fields."""
    rows = dict(re.findall(r"^\| `([a-z]+)` \| ([^|]*) \|", text("docs/reference/journal.md"), re.MULTILINE))
    for event in journal.AnyEvent.__args__:
        fields = {field.name for field in msgspec.structs.fields(event)} - {"attempt"}
        assert set(re.findall(r"`(\w+)`", rows.pop(str(event.__struct_config__.tag)))) == fields, event
    assert not rows


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path):
    """Every relative link on a page leads to a file that is there."""
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_commands_on_pages_exist(path):
    """Every `chaosckpt COMMAND` and `make TARGET` on a page is one that there is, with options that it has."""
    page = path.read_text(encoding="utf-8")
    found = dict(commands(group))
    for line in re.findall(r"^\s*(?:\$ )?chaosckpt ([a-z].*)$", page, re.MULTILINE):
        words = line.partition("#")[0].partition(" -- ")[0].split()
        command = found.get(" ".join(words[:2])) or found.get(words[0])
        assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known | {"--help"}, line
    for target in re.findall(r"^\s*(?:\$ )?make ([a-z]+)", page, re.MULTILINE):
        assert re.search(rf"^{target}:", text("Makefile"), re.MULTILINE), target


def test_readme_has_what_a_newcomer_needs():
    """The README shows both make commands, a finding and the four users."""
    page = text("README.md")
    for part in (
        "make fuzz",
        "make test",
        "## One real finding",
        "platform engineer",
        "checkpoint library",
        "training script",
        "plugin author",
    ):
        assert part in page


def plugin_classes(folder: str, base: str) -> Iterator[str]:
    """`module:Class` of every class under a package that names itself as a plugin does: by a tag, or by a name."""
    for path in (PACKAGE / folder).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in tree(path).body:
            if not isinstance(node, ast.ClassDef):
                continue
            tagged = any(keyword.arg == "tag" for keyword in node.keywords)
            targets = [
                target.id
                for item in node.body
                if isinstance(item, ast.Assign)
                for target in item.targets
                if isinstance(target, ast.Name)
            ]
            if (base == "fault" and tagged) or (base == "target" and "name" in targets):
                yield f"{module}:{node.name}"


def invariant_objects() -> Iterator[str]:
    """`module:name` of every invariant in the package of the built-in ones."""
    for path in (PACKAGE / "oracle" / "invariants").glob("*.py"):
        for node in tree(path).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "Invariant"
            ):
                yield f"chaosckpt.oracle.invariants.{path.stem}:{ast.unparse(node.targets[0])}"


def test_built_ins_are_registered_like_plugins():
    """Every target, fault and invariant of the package has its entry point, and every entry point its object."""
    declared = tomllib.loads(text("pyproject.toml"))["project"]["entry-points"]
    found = {
        "targets": set(plugin_classes("targets", "target")),
        "faults": set(plugin_classes("faults", "fault")),
        "invariants": set(invariant_objects()),
    }
    assert {kind: set(declared[f"chaosckpt.{kind}"].values()) for kind in found} == found


def test_the_installed_package_is_this_one():
    """The entry points that are installed are those of pyproject.toml; after a change: pip install -e . --no-deps."""
    declared = tomllib.loads(text("pyproject.toml"))["project"]["entry-points"]
    installed = {(entry.group, entry.name, entry.value) for entry in distribution("chaosckpt").entry_points}
    expected = {(kind, entry, value) for kind, entries in declared.items() for entry, value in entries.items()}
    assert expected <= installed, "run `pip install -e . --no-deps`"


def test_the_wheel_has_the_scenarios(tmp_path):
    """A wheel holds the scenarios inside the package, and the mark that it is typed."""
    import zipfile

    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {f"chaosckpt/scenarios/{path.name}" for path in (ROOT / "scenarios").glob("*.toml")}
    assert shipped | {"chaosckpt/py.typed", "chaosckpt/cli/main.py"} <= names
    assert not [entry for entry in names if entry.startswith(("tests/", "scenarios/"))]
