"""Real drills: of a correct checkpointer, which holds at every step, and of canaries, each of which fails at its own."""

from __future__ import annotations

import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chaosckpt import plugins
from chaosckpt.drill.certificate import Certificate
from chaosckpt.drill.drill import drill, known_steps
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import Scenario
from chaosckpt.scenario import load as scenarios

pytestmark = pytest.mark.timeout(900)
TWO_SAVES = {"steps": 4}
"""One to restore and one to interrupt; a third, older one, which must not be taken, is part of one drill."""


def scenario_of(
    use: str, ranks: Sequence[Sequence[int]] = ((1,),), workload: dict | None = None, **more: object
) -> Scenario:
    """A very small job that saves three times, in two steps each."""
    return scenarios.parse(
        {
            "name": f"drill-{use}",
            "target": {"use": use},
            "topology": {"ranks": [list(nodes) for nodes in ranks]},
            "workload": {"steps": 6, "save_every": 2, "layers": 1, **(workload or {})},
            **more,
        }
    )


def carried_out(scenario: Scenario) -> Certificate:
    return drill(scenario, tuple(plugins.invariants().values()))


def broken(certificate: Certificate) -> list[int]:
    """The numbers of the steps that were asked for, tested, and did not hold."""
    return [step.number for step in certificate.steps if step.asked and not step.held and step.outcome != "not tested"]


@pytest.fixture(scope="module")
def other_python(tmp_path_factory) -> Path:
    """Another interpreter: an environment of its own, which finds what this one has installed and one distribution more."""
    place: Path = tmp_path_factory.mktemp("other")
    venv.create(place, with_pip=False, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    # Not the bare path: so the .pth files that lie there are read, too.
    (packages / "this.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    made_up = packages / "made_up-2.0.dist-info"
    made_up.mkdir()
    (made_up / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 2.0\n")
    return place / "bin" / "python"


@pytest.fixture
def empty_temporary(tmp_path, monkeypatch) -> Iterator[Path]:
    """A temporary directory in which a drill must leave nothing."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_correct_checkpointer_holds_at_all_that_is_asked(other_python, empty_temporary):
    """Two nodes with storage of their own, another number of ranks, another interpreter: everything survives, with its evidence."""
    certificate = carried_out(
        scenario_of(
            "two-tier",
            ((1, 1),),
            drill={
                "interruptions": 2,
                "restore_ranks": [[1]],
                "restore_python": str(other_python),
                "environment": ["CHAOSCKPT_NAMED"],
            },
        )
    )
    assert [step.sentence for step in certificate.steps if not step.held] == []
    assert certificate.exit_code == 0
    told = {boundary.name: boundary.outcome for boundary in certificate.boundaries}
    assert told["loss of node-local storage"] == "survived"
    assert told["restart with another number of ranks"] == "survived"
    assert told["restart under another interpreter or dependency set"] == "survived"
    assert told["loss of power"] == "not tested"
    assert certificate.trajectory is not None
    assert certificate.trajectory.bitwise
    assert certificate.trajectory.steps == (5, 6)
    assert [one.held for one in certificate.interruptions] == [True, True]
    _proves_a_fresh_allocation(certificate, other_python)


def _proves_a_fresh_allocation(certificate: Certificate, other_python: Path) -> None:
    old = [process for process in certificate.processes if process.allocation == "saved"]
    new = [process for process in certificate.processes if process.allocation != "saved"]
    assert not {process.pid for process in old} & {process.pid for process in new}
    assert not {process.temporary for process in old} & {process.temporary for process in new}
    assert all("PATH" in process.environment for process in old)
    for process in new:
        assert not {"PATH", "HOME", "PYTEST_CURRENT_TEST"} & set(process.environment)
        elsewhere = process.allocation == "restored elsewhere"
        assert process.executable == (str(other_python) if elsewhere else sys.executable)
    assert "made-up" not in certificate.versions["saved"]
    assert certificate.versions["restored elsewhere"]["made-up"] == "2.0"
    assert {system.tier for system in certificate.file_systems} == {"shared", "local"}


@pytest.mark.parametrize(
    ("canary", "number", "ranks", "asked"),
    [
        ("optimizer-lost", 3, ((1,),), {"interruptions": 1}),
        ("torn", 5, ((1,),), {"interruptions": 3}),
        ("added-position-lost", 6, ((1,),), {"interruptions": 1, "restore_ranks": [[1, 1]]}),
    ],
)
def test_a_canary_fails_at_its_own_step(canary, number, ranks, asked):
    """The first step that does not hold is the one at which this bug shows; no step before it is blamed."""
    certificate = carried_out(scenario_of(f"canary-{canary}", ranks, TWO_SAVES, drill=asked))
    assert broken(certificate)[:1] == [number], [step.sentence for step in certificate.steps]
    assert certificate.exit_code == 1


def test_one_save_is_not_enough():
    """A drill needs a save to restore and a later one to interrupt; the sentence has the value and the next step."""
    with pytest.raises(
        UsageError, match=r"steps = 2 with workload\.save_every = 2 has only one save; raise steps to 4"
    ):
        known_steps(scenario_of("dcp", workload={"steps": 2}))


def test_a_command_is_refused():
    """A drill is of a target."""
    command = {"argv": ["python", "train.py", "--out", "{out}"]}
    with pytest.raises(UsageError, match="a drill needs a target"):
        known_steps(scenarios.parse({"name": "command", "command": command}))


def test_an_interpreter_without_what_the_target_needs_is_refused_at_once(other_python, tmp_path):
    """The target's own import is tried there before anything is started, and the sentence has what it said."""
    target = tmp_path / "needy.py"
    target.write_text(
        "import sys\n"
        "from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic\n"
        f"if sys.prefix == {str(other_python.parent.parent)!r}:\n"
        "    raise ImportError('no module of that name here')\n"
        "class Needy(TorchSaveAtomic):\n"
        "    name = 'needy'\n"
    )
    scenario = scenario_of(f"{target}:Needy", drill={"restore_python": str(other_python)})
    with pytest.raises(
        UsageError, match=rf"restore_python = '{other_python}' can't run a rank: .*no module of that name here"
    ):
        carried_out(scenario)
