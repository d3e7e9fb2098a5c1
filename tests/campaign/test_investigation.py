"""Investigations that were stopped: nothing that was found is lost, and a resumed campaign ends as if nothing had stopped it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec
import pytest

from chaosckpt import oracle
from chaosckpt.campaign.execution import Executed
from chaosckpt.campaign.finding_store import FindingStore
from chaosckpt.campaign.investigation import Investigator
from chaosckpt.campaign.journal_files import JournalFile
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.search import Search
from chaosckpt.campaign.store import TrialLog, TrialRecord
from chaosckpt.faults.cut import Cut
from chaosckpt.model import formats
from chaosckpt.model.finding import Finding
from chaosckpt.model.schedule import Schedule, to_builtins
from chaosckpt.model.summary import FindingSummary
from chaosckpt.strategies import draw
from tests.oracle.journals import interrupted
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS

CENSUS = dcp_model.census()
SCENARIO = dcp_model.scenario()


def fails(schedule: Schedule) -> bool:
    """Planted: a whole job that is cut while it writes can't be recovered."""
    cuts = [fault for fault in schedule.faults if isinstance(fault, Cut)]
    return any(trigger.address.op == "write" for cut in cuts for trigger in cut.triggers())


class Trials:
    """In place of an executor: a schedule fails or not by itself. `stop` is called with the number of each trial."""

    def __init__(self, stop: Callable[[int], None] = lambda number: None) -> None:
        self.stop = stop
        self.number = 0

    def run(self, schedule: Schedule, trial: str, *_: object) -> Executed:
        self.number += 1
        self.stop(self.number)
        told = interrupted(schedule=to_builtins(schedule), trial=trial, format=formats.RUN)
        ended = told.raises("recover", "EOFError", "it is empty").ends("failed") if fails(schedule) else None
        journal = (ended or told.recovers(2).ends_well()).journal()
        return Executed(journal, oracle.check(SCENARIO, journal))

    def as_launched(self) -> AbstractContextManager[None]:
        return nullcontext()


class Part:
    """One part of a campaign in a run directory, with a record of every trial that an earlier part has run."""

    def __init__(self, run: Path) -> None:
        (run / "findings").mkdir(parents=True, exist_ok=True)
        options = FuzzOptions(scenario=SCENARIO, run=str(run), trials=0)
        self.investigator = Investigator(options, CENSUS, KINDS, lambda _: None)
        self.search = Search(
            options,
            CENSUS,
            KINDS,
            TrialLog(run),
            self.investigator.investigate,
            self.investigator.cause,
            lambda _: None,
        )
        self.search.findings = self.investigator.count
        self.investigator.watch(self.search)

    def runs(self, trials: Trials) -> tuple[list[FindingSummary], int]:
        """Look into what is not finished; the findings, and the number of trials that it took."""
        records = self.search.tally.records
        self.search.unfinished = self.investigator.unfinished(records.values())
        self.search.run([trials])  # type: ignore[list-item]
        self.investigator.close()
        return self.investigator.summaries(records.values()), trials.number


def killed(run: Path, indices: list[int]) -> Path:
    """The run directory of a campaign that was killed before it looked into the violations of these trials."""
    journals = JournalFile(run / "journals" / "worker-0.jsonl.gz")
    for index in indices:
        executed = Trials().run(draw(1, index, SCENARIO, CENSUS, KINDS), f"1:{index}")
        for event in executed.journal.events:
            journals.write(executed.journal.trial, event)
        cause = oracle.root_cause(executed.journal, executed.verdict)
        TrialLog(run).append(TrialRecord(index=index, trial=f"1:{index}", outcome="violation", cause=cause))
    journals.close()
    return run


@pytest.fixture(scope="module")
def indices() -> list[int]:
    """Three trials that fail and have something to shrink."""
    drawn = ((index, draw(1, index, SCENARIO, CENSUS, KINDS)) for index in range(400))
    return [index for index, schedule in drawn if len(schedule.faults) > 1 and fails(schedule)][:3]


def stored(run: Path) -> list[Finding]:
    options = FuzzOptions(scenario=SCENARIO, run=str(run))
    return [one.finding for one in FindingStore(options, CENSUS, KINDS).read()]


@pytest.mark.parametrize("last", [1, 4, -3])
def test_a_finding_that_was_not_shrunk_is_shrunk_by_the_resumed_campaign(tmp_path, indices, last):
    """Stopped while the violation is confirmed, shrunk, or replayed: what was found is stored, and then becomes what an
    uninterrupted campaign stores; nothing of the first state stays."""
    at_once, trials = Part(killed(tmp_path / "whole", indices)).runs(Trials())
    run = killed(tmp_path / "stopped", indices)
    part = Part(run)
    end = last if last > 0 else trials + last
    partial, _ = part.runs(Trials(lambda number: part.search.stopped.set() if number == end else None))
    assert [(one.interrupted, one.count) for one in partial] == [(True, 3)]
    assert "--resume" in (Path(partial[0].path) / "README.md").read_text()

    resumed, again = Part(run).runs(Trials())
    assert again == trials
    assert [msgspec.structs.replace(one, path="", command="") for one in resumed] == [
        msgspec.structs.replace(one, path="", command="") for one in at_once
    ]
    assert stored(run) == stored(tmp_path / "whole")
    assert len(stored(run)[0].faults) == 1
    assert Part(run).runs(Trials())[1] == 0, "a finished finding is looked into again"


def test_a_finding_stays_until_its_successor_is_stored(tmp_path, indices):
    """A resumed campaign that is stopped before it comes to the unfinished finding tells of it as before."""
    run = killed(tmp_path / "stopped", indices)
    part = Part(run)
    partial, _ = part.runs(Trials(lambda number: part.search.stopped.set()))
    resumed = Part(run)
    resumed.search.stopped.set()
    assert resumed.runs(Trials()) == (partial, 0)
