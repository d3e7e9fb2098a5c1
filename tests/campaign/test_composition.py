"""What `make fuzz` is made of: the schedules that its command draws from the real census."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from chaosckpt.engine.golden.census import measure
from chaosckpt.plugins import fault_kinds
from chaosckpt.scenario import load as scenarios
from chaosckpt.strategies.coverage import aims_at_recovery
from chaosckpt.strategies.drawing import draw, is_single
from tests.engine.case import Case

ROOT = Path(__file__).parents[2]


def test_make_fuzz_runs_multi_fault_multi_topology_and_recovery_fault_schedules() -> None:
    """Goal: the campaign that a newcomer runs meets every shape of schedule, and single faults alternate with others."""
    makefile = (ROOT / "Makefile").read_text()
    settings = dict(re.findall(r"^(TRIALS|SEED|SCENARIO) +\?= (\S+)$", makefile, re.MULTILINE))
    assert re.search(r"fuzz \$\(SCENARIO\) --trials \$\(TRIALS\) --seed \$\(SEED\)", makefile)
    scenario = scenarios.find(str(ROOT / settings["SCENARIO"]))
    case = Case(scenario)
    try:
        census = measure(scenario, case.arena)
    finally:
        case.close()
    kinds, seed = fault_kinds(), int(settings["SEED"])
    drawn = [draw(seed, index, scenario, census, kinds) for index in range(int(settings["TRIALS"]))]
    first = scenario.topology.topologies[0]
    assert not drawn[0].faults
    assert [is_single(seed, index, scenario, census, kinds) for index in range(1, 9)] == [True, False] * 4
    assert sum(len(schedule.faults) > 1 for schedule in drawn) >= 50
    assert sum(len(set(schedule.topologies(first))) > 1 for schedule in drawn) >= 5
    assert sum(aims_at_recovery(schedule, census) for schedule in drawn) >= 30
    met = Counter(fault.kind for schedule in drawn for fault in schedule.faults)
    assert set(met) >= {
        "cut",
        "sigkill",
        "sigterm",
        "errno",
        "space",
        "latency",
        "node-loss",
        "world-size",
        "shared-storage-loss",
    }, met
