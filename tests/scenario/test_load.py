"""Reading scenarios: where they are found, and that every bad input gets one sentence with its value and the next step."""

from __future__ import annotations

import os

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.scenario import load as scenario

BASE = 'name = "x"\n[target]\nuse = "dcp"\n'


def write(tmp_path, text: str):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def refusal(call, *arguments) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message, "one sentence stands on one line"
    assert "msgspec" not in message
    return message


@pytest.mark.parametrize("name", sorted(scenario.shipped()))
def test_shipped_scenarios_are_valid(name):
    """Every scenario in the package can be read, bears the name of its file and describes itself."""
    found = scenario.find(name)
    assert found.name == name
    assert found.description


def test_the_shipped_set_is_complete():
    """The scenarios that the documentation speaks of are there."""
    names = "dcp dcp-async dcp-fsdp2 dcp-overwrite torch-save torch-save-atomic two-tier"
    assert set(names.split()) <= set(scenario.shipped())


def test_dcp_has_two_nodes_and_other_world_sizes():
    """The default scenario has two nodes with one rank each, and topologies to change to."""
    topologies = scenario.find("dcp").topology.topologies
    assert topologies[0].ranks == (1, 1)
    assert len({topology.world_size for topology in topologies}) == 3


def test_found_from_anywhere(tmp_path, monkeypatch):
    """`scenarios/dcp.toml`, `dcp.toml` and `dcp` mean the shipped file where there is no checkout."""
    monkeypatch.chdir(tmp_path)
    assert scenario.find("scenarios/dcp.toml") == scenario.find("dcp.toml") == scenario.find("dcp")


def test_a_file_of_ones_own_comes_first(tmp_path, monkeypatch):
    """A file that is there wins over the shipped scenario of the same name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dcp.toml").write_text(BASE)
    assert scenario.find("dcp.toml").name == "x"


CASES = [
    ("unknown key", BASE + "[workload]\nstpes = 3", ["workload.stpes", "'steps'"]),
    ("unknown key at the top", 'nmae = "x"\n' + BASE, ["'nmae'", "'name'"]),
    ("unknown table", BASE + "[toplogy]\nranks = [[1]]", ["'toplogy'", "'topology'"]),
    ("missing target", 'name = "x"', ["'target'", "[target]"]),
    ("missing name", '[target]\nuse = "dcp"', ["'name' is missing"]),
    ("target as a string", 'name = "x"\ntarget = "dcp"', ["target = 'dcp'", "[target]"]),
    ("wrong type", BASE + '[workload]\nsteps = "six"', ["workload.steps = 'six'", "a whole number"]),
    ("float for int", BASE + "[workload]\nsteps = 1.5", ["workload.steps = 1.5", "a whole number"]),
    ("zero steps", BASE + "[workload]\nsteps = 0", ["workload.steps is 0", "1 or more"]),
    ("never saves", BASE + "[workload]\nsteps = 2\nsave_every = 3", ["save_every = 3", "steps = 2", "raise steps"]),
    ("wrong choice", BASE + '[run]\nlaunch = "warm"', ["run.launch = 'warm'", "'exec', 'fork'"]),
    ("ranks too flat", BASE + "[topology]\nranks = [1, 1]", ["topology.ranks[0] = 1", "[[1, 1], [2]]"]),
    ("no topology", BASE + "[topology]\nranks = []", ["topology.ranks = []"]),
    ("no node", BASE + "[topology]\nranks = [[]]", ["[]", "at least one node"]),
    ("no rank", BASE + "[topology]\nranks = [[1], [2, 0]]", ["[2, 0]", "at least one rank"]),
    ("negative ranks", BASE + "[topology]\nranks = [[-1]]", ["[-1]"]),
    ("no such node", BASE + "[topology]\nranks = [[1, 1]]\nfailure_groups = [[0, 2]]", ["node 2", "2 nodes"]),
    ("node twice", BASE + "[topology]\nranks = [[1, 1]]\nfailure_groups = [[0], [0, 1]]", ["node 0 twice"]),
    ("too many ranks", BASE + "[topology]\nranks = [[2000]]", ["[2000]", "1024"]),
    ("unknown target", 'name = "x"\n[target]\nuse = "dpc"', ["'dpc'", "'dcp'"]),
    ("missing target file", 'name = "x"\n[target]\nuse = "gone.py:A"', ["gone.py:A", "there is no file", "init"]),
    ("unknown option", BASE + "options = { kep = 3 }", ["target.options.kep", "dcp"]),
    ("option is a list", BASE + "options = { keep = [3] }", ["target.options.keep = [3]", "a number"]),
    ("unknown guarantee", BASE + 'guarantees = ["crash"]', ["target.guarantees[0] = 'crash'", "'process-crash'"]),
    ("unknown fault", BASE + "[faults]\nkinds = { sigkil = 1 }", ["faults.kinds.sigkil", "'sigkill'"]),
    (
        "weight as text",
        BASE + '[faults]\nkinds = { cut = 1, sigkill = "x" }',
        ["faults.kinds.sigkill = 'x'", "a number"],
    ),
    ("negative weight", BASE + "[faults]\nkinds = { cut = -1 }", ["faults.kinds.cut = -1"]),
    ("weight no number", BASE + "[faults]\nkinds = { cut = nan }", ["faults.kinds.cut = nan", "from 0 upwards"]),
    ("weight infinite", BASE + "[faults]\nkinds = { cut = inf }", ["faults.kinds.cut = inf"]),
    ("no fault left", BASE + "[faults]\nkinds = { cut = 0 }", ["weight 0"]),
    ("relative storage", BASE + '[storage]\nshared = "here"', ["storage.shared = 'here'", "absolute"]),
    ("no storage", BASE + '[storage]\nshared = "/no/such/place"', ["'/no/such/place'", "create it"]),
    ("not TOML", "name = = 3", ["is not valid TOML", "line 1"]),
]


@pytest.mark.parametrize(("text", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_input_gets_one_sentence(tmp_path, text, parts):
    """The sentence names the file, the offending value and what to do; nothing is made."""
    path = write(tmp_path, text)
    message = refusal(scenario.read, path)
    for part in (str(path), *parts):
        assert part in message, message
    assert os.listdir(tmp_path) == ["mine.toml"]


@pytest.mark.parametrize(
    "drill", ["restore_ranks = [[1, 1]]", 'restore_python = "python3"', 'environment = ["TMPDIR"]', "interruptions = 0"]
)
def test_what_only_a_drill_minds_is_not_refused_here(tmp_path, drill):
    """`chaosckpt fuzz` reads the same files, and nothing in [drill] changes what it does."""
    assert scenario.read(write(tmp_path, f"{BASE}[drill]\n{drill}")).name == "x"


def test_an_option_of_another_type_is_refused(tmp_path):
    """An option is compared with the target's default, before anything runs."""
    path = write(tmp_path, 'name = "x"\n[target]\nuse = "two-tier"\noptions = { keep = "all" }')
    message = refusal(scenario.read, path)
    assert "target.options.keep = 'all'" in message
    assert "int" in message


def test_missing_files_and_directories(tmp_path):
    """A file that isn't there, a directory and bytes that are no text are refused."""
    assert "'dpc'; did you mean" not in refusal(scenario.find, str(tmp_path / "gone.toml"))
    assert "is a directory" in refusal(scenario.find, str(tmp_path))
    path = tmp_path / "binary.toml"
    path.write_bytes(b"name = '\xff'")
    assert "UTF-8" in refusal(scenario.read, path)
    assert "did you mean 'dcp'" in refusal(scenario.find, "dpc")


TARGET = "from chaosckpt.targets import Target\nclass Mine(Target):\n    pass\nclass Other:\n    pass\n"


def test_a_target_alone_gets_a_default_scenario(tmp_path, monkeypatch):
    """`file.py:Class` means a scenario with two nodes and a change of the world size, with an absolute path in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TARGET)
    found = scenario.find("mine.py:Mine")
    assert found.target.use == f"{tmp_path / 'mine.py'}:Mine"
    assert found.name == "Mine"
    assert len({topology.world_size for topology in found.topology.topologies}) > 1


def test_a_targets_file_is_looked_for_beside_the_scenario(tmp_path, monkeypatch):
    """A path in a scenario means a file from the current directory, or beside the scenario."""
    monkeypatch.chdir("/")
    (tmp_path / "mine.py").write_text(TARGET)
    found = scenario.read(write(tmp_path, 'name = "x"\n[target]\nuse = "mine.py:Mine"'))
    assert found.target.use == f"{tmp_path / 'mine.py'}:Mine"


@pytest.mark.parametrize(
    ("spec", "part"), [("mine.py:Mien", "has no class 'Mien'"), ("mine.py", "named without a class")]
)
def test_a_targets_class_is_checked_without_running_its_file(tmp_path, monkeypatch, spec, part):
    """A class that isn't there is refused with those that are; the file isn't imported for that."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TARGET + "raise SystemExit(9)\n")
    message = refusal(scenario.find, spec)
    assert part in message
    assert "Mine, Other" in message


def test_a_target_that_is_no_python(tmp_path, monkeypatch):
    """A syntax error in the target's file is told with its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Mine(:\n")
    assert "line 1" in refusal(scenario.find, "mine.py:Mine")
