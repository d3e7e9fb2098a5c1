"""The search: what a worker meets ends it, or everything."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaosckpt.campaign.execution import Executed
from chaosckpt.campaign.finding_store import StoredFinding
from chaosckpt.campaign.investigation import Investigator
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.search import Search, refusals
from chaosckpt.campaign.store import TrialLog, TrialRecord
from chaosckpt.campaign.tally import Tally
from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.finding import Finding, RootCause
from chaosckpt.model.journal import Journal, Untraced
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.topology import Topology
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.strategies.coverage import CensusPoint
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


def test_golden_runs_count_into_the_budget_of_time(tmp_path, monkeypatch):
    """A campaign whose preparation has used up its minutes takes no trial."""
    started = search(tmp_path, monkeypatch, ZeroDivisionError("a trial was drawn"))
    started.options = msgspec.structs.replace(started.options, seconds=60.0)
    started._begun = time.monotonic() - 61
    started.run([object()])  # type: ignore[list-item]
    assert started.fresh == 0


def test_an_interrupted_investigation_stores_what_it_has(tmp_path, monkeypatch):
    """Stopped before anything was replayed, the violation still becomes a finding, unshrunk, and says so; nothing more is run."""
    written: list[Finding] = []

    class Store:
        def __init__(self, *_: object) -> None: ...

        def read(self) -> list[StoredFinding]:
            return []

        def write(self, finding: Finding, *_: object) -> StoredFinding:
            written.append(finding)
            return StoredFinding(finding=finding)

    monkeypatch.setattr("chaosckpt.campaign.investigation.FindingStore", Store)
    stopped = search(tmp_path, monkeypatch, ZeroDivisionError())
    stopped.stopped.set()
    investigator = Investigator(stopped.options, stopped.census, {}, lambda _: None)
    investigator.watch(stopped)
    violation = Violation(invariant="complete-only", sentence="a mix", attempt=0)
    verdict = Verdict(outcome="violation", primary=violation)
    cause = RootCause(invariant="complete-only")
    record = TrialRecord(index=3, trial="1:3", outcome="violation", violation=violation, cause=cause)
    monkeypatch.setattr("chaosckpt.oracle.root_cause", lambda *_: cause)
    executor: Any = object()  # has no `run`: a replay would fail
    investigator.investigate(executor, record, Schedule(()), Executed(Journal(()), verdict))
    assert [(found.reproduced, found.replays) for found in written] == [(0, 0)]


def test_struck_points_are_kept_once():
    """However many trials strike an operation, and wherever their evidence was read from, its point is the census's own."""
    operation = Point(Address(0, "main", "write", "shared:a", 1, 0), Label("persist", 2))
    census = Census(runs=(GoldenRun(topology=Topology((1,)), resumed_from=None, points=(operation,), saves=(2,)),))
    tally = Tally(census)
    (point,) = tally.points
    for index in range(3):
        copy = msgspec.json.decode(msgspec.json.encode(point), type=CensusPoint)
        assert copy is not point
        tally.add(TrialRecord(index=index, trial=f"1:{index}", outcome="pass", struck=(copy,)))
    assert all(record.struck[0] is point for record in tally.records.values())
    assert tally.coverage().hit == 1


def test_a_refused_ring_is_not_told() -> None:
    """Goal: what the fence refused is told at the end; a ring for asynchronous operations does no harm, and every job asks for one."""
    said = [
        "open of /etc/passwd for writing was refused",
        "a ring for asynchronous input and output was refused with ENOSYS",
    ]
    events = tuple(Untraced(attempt=0, rank=0, what=what, refused=True) for what in said)
    assert list(refusals(Journal(events))) == said[:1]
