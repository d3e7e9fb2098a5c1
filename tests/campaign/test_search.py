"""The search: what a worker meets ends it, or everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.search import Search
from chaosckpt.campaign.store import TrialLog
from chaosckpt.model.census import Census, GoldenRun
from chaosckpt.model.topology import Topology
from tests.oracle.journals import SCENARIO


def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Search:
    """A search whose every schedule raises this while it is drawn."""

    def draw(*_: object) -> Any:
        raise error

    monkeypatch.setattr("chaosckpt.campaign.search.draw", draw)
    census = Census(runs=(GoldenRun(topology=Topology((1, 1)), resumed_from=None, points=(), saves=()),))
    options = FuzzOptions(scenario=SCENARIO, run=str(tmp_path), trials=3)
    return Search(options, census, {}, TrialLog(tmp_path), lambda *_: None, lambda _: None, lambda _: None)


def test_a_fault_of_our_own_in_a_worker_is_raised(tmp_path, monkeypatch):
    """Goal: it ends the campaign with its error, and not as one that was done after fewer trials."""
    started = search(tmp_path, monkeypatch, ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError, match="ours"):
        started.run([object(), object()])  # type: ignore[list-item]
