"""A job that ends without a fault and is launched once more: every save it acknowledged is audited, whatever retention removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.schedule import PLAIN_RESTART
from tests.engine.case import Case, scenario_of

TARGET = """
import torch
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic

class FirstIsWrong(TorchSaveAtomic):
    def write(self, directory, shared_part, own_part):
        if "000001" in directory.name:
            name = next(iter(shared_part))
            shared_part = {**shared_part, name: {key: torch.zeros_like(value) for key, value in shared_part[name].items()}}
        super().write(directory, shared_part, own_part)

class Right(TorchSaveAtomic):
    pass
"""


@pytest.mark.parametrize(("name", "outcome"), [("FirstIsWrong", "violation"), ("Right", "pass")])
def test_an_older_step_that_never_loads_right_is_found_without_a_fault(tmp_path: Path, name: str, outcome: str) -> None:
    """Goal: the first of three saves, removed by the end, is loaded from storage as it was; only the wrong one is told."""
    (tmp_path / "own.py").write_text(TARGET)
    case = Case(scenario_of(f"{tmp_path / 'own.py'}:{name}", ((2,),)))
    try:
        journal, verdict = case.run_schedule(PLAIN_RESTART)
    finally:
        case.arena.close()
    audited = {event.step for event in journal.events if isinstance(event, j.Audited)}
    assert audited == {1, 2, 3}
    assert verdict.outcome == outcome
    if verdict.primary is not None:
        assert (verdict.primary.invariant, verdict.primary.step) == ("durable-acknowledgement", 1)
        assert "Likely cause" not in verdict.primary.sentence
