"""One kill trial: 2 ranks, 3 steps, save, kill in mid-save, relaunch, load, verify; and the CPU time that it takes."""

from __future__ import annotations

import time

from benchmarks import cpu
from benchmarks.arenas import PATIENT, operations
from chaosckpt import oracle
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.errors import HarnessError
from chaosckpt.faults.cut import Cut
from chaosckpt.model.fault import Trigger
from chaosckpt.model.scenario import Scenario, WorkloadSettings
from chaosckpt.model.schedule import AttemptPlan, Schedule

CHECKPOINTER = "BoundedDcp"
WORKLOAD = WorkloadSettings(steps=3, save_every=2)
"""Saves after steps 2 and 3; the second one is cut, and the relaunched job resumes from the first."""
KILLED_SAVE = 3
WARMING = 7
"""Trials before the first measured one: what a node does once for the hundreds of trials of a campaign is no trial's cost."""


class KillTrial:
    """The same trial, as often as wanted, on one arena; with a gate it strikes a write, else a stage boundary before it."""

    def __init__(self, scenario: Scenario, arena: Arena) -> None:
        self._scenario = scenario
        self._subject = TargetSubject(scenario, referenced=False)
        self._arena = arena
        self._schedule = Schedule((AttemptPlan((Cut((self._trigger(),)),)),))
        for _ in range(WARMING):
            self.cpu_seconds()

    def _trigger(self) -> Trigger:
        seen = [row for row in operations(self._arena, self._scenario) if row.step == KILLED_SAVE]
        addresses = [row.operation.address for row in seen]
        writes = [address for address in addresses if address.op == "write" and address.path.endswith(".distcp")]
        marks = [address for address in addresses if address.path == f"stage:mark in persist of save {KILLED_SAVE}"]
        return Trigger(writes[len(writes) // 2] if writes else marks[-1])

    def cpu_seconds(self) -> float:
        """Run it once: CPU seconds of the node with all that it started, and of this process, which runs and judges it.

        Raises HarnessError when the trial did not go as it must.
        """
        before = self._clock()
        journal = run_trial(self._subject, self._schedule, self._arena, trial="benchmark", deadlines=PATIENT)
        verdict = oracle.check(self._scenario, journal)
        used = self._clock() - before
        if verdict.outcome != "pass":
            raise HarnessError(f"the kill trial that is measured ended as {verdict}")
        return used

    def _clock(self) -> float:
        nodes = [node for node in self._arena.distinct() if isinstance(node, LocalNode)]
        return time.process_time() + sum(cpu.of_tree(node.pid) for node in nodes)
