"""Summaries that several tests of the reports show."""

from __future__ import annotations

from chaosckpt.model.summary import CampaignSummary, Coverage, FindingSummary, StageCoverage

MIX = FindingSummary(
    id="complete-only-persist",
    invariant="complete-only",
    root_cause="complete-only / persist write latest/__#_#.distcp",
    count=36,
    faults=("kill of the job before rank 1 write #3 on shared:latest/__1_0.distcp",),
    reproduced="10/10",
    path="runs/001/findings/complete-only-persist",
    sentence="rank 1 loaded step 2 in latest/__1_0.distcp where rank 0 loaded step 4: a mix of two generations",
    command="chaosckpt reproduce runs/001/findings/complete-only-persist",
    trials=("1:3", "1:9"),
)
BARE = FindingSummary(
    id="newest-complete-commit",
    invariant="newest-complete",
    root_cause="newest-complete / commit unlink latest/.metadata",
    count=1,
    faults=("first fault", "second fault"),
    reproduced="3/10",
    path="runs/001/findings/newest-complete-commit",
    sentence="nothing was loadable",
)
COVERAGE = Coverage(hit=120, total=400, by_stage={"load": StageCoverage(20, 100), "persist": StageCoverage(100, 300)})
FOUND = CampaignSummary(
    trials=60,
    passed=20,
    violations=37,
    inconclusive=3,
    rate_per_minute=151.4,
    coverage=COVERAGE,
    run="runs/001",
    findings=(MIX, BARE),
    singles=31,
    multis=29,
    trials_by_attempts={"10": 1, "2": 40, "3": 19},
    trials_by_faults={"1": 31, "2": 29},
    trials_by_topologies={"1": 50, "2": 10},
    recovery_faults=12,
    inconclusive_reasons={"the fault was not injected": 2, "a rank did not arrive": 1},
)
CLEAN = CampaignSummary(
    trials=10, passed=10, violations=0, inconclusive=0, rate_per_minute=99, coverage=COVERAGE, run="runs/002"
)
