"""The tally: what the finished trials of a campaign add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from chaosckpt.campaign.store import TrialRecord
from chaosckpt.model.census import Census
from chaosckpt.model.summary import CampaignSummary, Coverage, FindingSummary, StageCoverage, TrainingSeen
from chaosckpt.report.text import STAGES
from chaosckpt.strategies.coverage import CensusPoint, all_points


class Tally:
    """Counts trials as they finish; in no particular order, and with the same result in any."""

    def __init__(self, census: Census) -> None:
        self.records: dict[int, TrialRecord] = {}
        self._census = census
        self.points = all_points(census)
        self._own = {point: point for point in self.points}
        self.struck: set[CensusPoint] = set()
        self._stage = _stages(census)

    def add(self, record: TrialRecord) -> None:
        """Count one finished trial. Its points are kept as the census has them, and not once more for each trial that struck one."""
        record = msgspec.structs.replace(record, struck=tuple(self._own.get(point, point) for point in record.struck))
        self.records[record.index] = record
        self.struck.update(point for point in record.struck if point in self.points)

    def count(self, outcome: str) -> int:
        return sum(record.outcome == outcome for record in self.records.values())

    def coverage(self) -> Coverage:
        """Census points hit with evidence."""
        hit = Counter(self._stage[point] for point in self.struck)
        total = Counter(self._stage[point] for point in self.points)
        by_stage = {stage: StageCoverage(hit[stage], total[stage]) for stage in STAGES if total[stage]}
        return Coverage(len(self.struck), len(self.points), by_stage)

    def summary(
        self,
        *,
        scenario: str,
        seed: int,
        run: str,
        seconds: float,
        findings: Sequence[FindingSummary],
        fresh: int,
        gate: str,
        launch: str,
        launcher: str,
        seen: TrainingSeen,
        interrupted: bool,
        max_inconclusive: float,
        remarks: tuple[str, ...] = (),
    ) -> CampaignSummary:
        """The campaign's result. `fresh` trials were run in `seconds` by this part of the campaign."""
        records = [self.records[index] for index in sorted(self.records)]
        return CampaignSummary(
            trials=len(records),
            passed=self.count("pass"),
            violations=self.count("violation"),
            inconclusive=self.count("inconclusive"),
            rate_per_minute=round(60 * fresh / seconds, 1) if seconds > 0 else 0.0,
            coverage=self.coverage(),
            run=run,
            findings=tuple(findings),
            singles=sum(record.single for record in records),
            multis=sum(not record.single and record.faults > 0 for record in records),
            trials_by_attempts=_histogram(record.attempts for record in records),
            trials_by_faults=_histogram(record.faults for record in records),
            trials_by_topologies=_histogram(record.topologies for record in records),
            recovery_faults=sum(record.recovery_fault for record in records),
            inconclusive_reasons=_by_frequency(record.reason for record in records if record.outcome == "inconclusive"),
            gaps=_by_frequency(gap for record in records for gap in record.gaps),
            refused=_by_frequency(what for record in records for what in record.refused),
            scenario=scenario,
            seed=seed,
            gate=gate,
            launch=launch,
            launcher=launcher,
            observer=seen.observer,
            unjudged=seen.unjudged,
            restarts=seen.restarts,
            prefixes=self._census.prefixes,
            recovery_gaps=tuple(map(str, self._census.gaps)),
            interrupted=interrupted,
            harness_troubles=sum(record.harness_trouble for record in records),
            max_inconclusive=max_inconclusive,
            remarks=remarks,
        )


def _stages(census: Census) -> dict[CensusPoint, str]:
    stages: dict[CensusPoint, str] = {}
    for run in census.runs:
        for point in run.points:
            key = CensusPoint(point.address, run.resumed_from is not None and point.label.step is None)
            stages.setdefault(key, point.label.stage)
    return stages


def _histogram(numbers: Iterable[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(Counter(numbers).items())}


def _by_frequency(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items(), key=lambda item: (-item[1], item[0])))
