"""What a script tells through chaosckpt.probe: nothing outside of chaosckpt, and in it just what it says, torn lines left out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from chaosckpt import probe
from chaosckpt.commands.output import samples_by_step, told
from tests.engine.scripts import arena_for, python, run_once, scenario_of

TELLS = """
import sys
from chaosckpt import probe
state = {"weights": [1, 2, 3], "step": 2}
probe.trained(1, [4, 2])
probe.trained(2, range(2))
open(sys.argv[1] + "/ckpt-2", "w").close()
probe.saved(2, state)
probe.resumed(2, {"step": 2, "weights": [1, 2, 3]})
"""


def test_outside_of_chaosckpt_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a script that has the three lines in it runs anywhere."""
    monkeypatch.delenv(probe.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert not probe.active()
    probe.saved(1, {"weights": torch.ones(2)})
    probe.resumed(1)
    probe.trained(1, [1])
    assert list(tmp_path.iterdir()) == []


def test_what_a_script_tells_is_what_the_harness_hears(tmp_path: Path) -> None:
    """Goal: in a fork of the warm interpreter the probe is imported afresh, and its file is no operation of the script's."""
    script = tmp_path / "tells.py"
    script.write_text(TELLS)
    scenario = scenario_of(python(script, "{out}"), tmp_path)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
    assert run.outcome == "finished", run.output
    assert [(event.what, event.step) for event in run.told] == [
        ("trained", 1),
        ("trained", 2),
        ("saved", 2),
        ("resumed", 2),
    ]
    assert samples_by_step(run.told) == {1: (2, 4), 2: (0, 1)}
    assert run.told[2].digest == run.told[3].digest != ""
    assert not run.refused
    assert {operation.address.path for operation in run.trace if "probe" in operation.address.path} == set()


@pytest.mark.parametrize(
    "other",
    [{"a": torch.tensor([1.0, 2.5])}, {"a": torch.tensor([1.0, 2.0]).double()}, {"b": torch.tensor([1.0, 2.0])}],
)
def test_a_digest_tells_values_types_and_names_apart(other: dict[str, torch.Tensor]) -> None:
    """Goal: equal states have equal digests, and nothing else has."""
    state = {"a": torch.tensor([1.0, 2.0])}
    assert probe.digest(state) == probe.digest({"a": torch.tensor([1.0, 2.0])})
    assert probe.digest(state) != probe.digest(other)
    assert probe.digest([1, [2, 3]]) != probe.digest([[1, 2], 3])


def test_a_line_that_a_kill_cut_short_is_left_out() -> None:
    """Goal: half a line is no evidence of anything."""
    assert told(['{"what": "saved", "rank": 0, "step": 2}', '{"what": "sav'], 1)[0].step == 2
    assert len(told(['{"what": "saved", "rank": 0, "step": 2}', '{"what": "sav'], 1)) == 1
