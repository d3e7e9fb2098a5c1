"""Arenas of a command's campaign: one a worker, and none is left or made anew once the campaign has ended."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from chaosckpt.campaign.arenas import LocalArenas
from chaosckpt.engine.subjects import subject_of
from chaosckpt.errors import HarnessError
from chaosckpt.model.scenario import StorageSettings
from tests.engine.scripts import COUNTING, python, run_once, scenario_of


def test_a_worker_whose_arena_was_closed_gets_no_other(tmp_path: Path) -> None:
    """Goal: after an impatient interrupt no worker goes on in a new arena, whose storage nobody would remove."""
    (tmp_path / "storage").mkdir()
    (tmp_path / "train.py").write_text(COUNTING)
    scenario = msgspec.structs.replace(
        scenario_of(python(tmp_path / "train.py", "{out}"), tmp_path),
        storage=StorageSettings(shared=str(tmp_path / "storage")),
    )
    with LocalArenas(subject_of(scenario).open_arena, 2) as arenas:
        first = arenas.arena(0)
        assert arenas.arena(0) is first
        assert run_once(scenario, arenas.rebuild(0)).outcome == "finished"
        assert len(list((tmp_path / "storage").iterdir())) == 1
    for ask in (arenas.arena, arenas.rebuild):
        with pytest.raises(HarnessError, match="ended"):
            ask(0)
    assert list((tmp_path / "storage").iterdir()) == []
