"""The drill: the restart test of one scenario, step by step, as a certificate. It works without a gate, but for the interruptions."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from chaosckpt.drill.allocation import require_interpreter
from chaosckpt.drill.certificate import Certificate
from chaosckpt.drill.certification import Carried, Seen, certificate
from chaosckpt.drill.evidence import Findings, judge
from chaosckpt.drill.interruption import Rehearsal, cuts, interrupt, rehearse
from chaosckpt.drill.restart import Restarting
from chaosckpt.engine.node.launcher import SET_BY_HARNESS
from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.arena import Arena, open_local
from chaosckpt.engine.subjects import subject_of
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.engine.wire import storage
from chaosckpt.errors import UsageError
from chaosckpt.measure import file_system
from chaosckpt.measure.measurement import FileSystem
from chaosckpt.model.journal import Journal
from chaosckpt.model.scenario import DrillSettings, Scenario
from chaosckpt.model.topology import Topology, check_ranks
from chaosckpt.oracle.invariant import Invariant

Progress = Callable[[str], None]
Keep = Callable[[Journal], None]
MOST_INTERRUPTIONS = 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def drill(
    scenario: Scenario,
    invariants: Sequence[Invariant],
    *,
    progress: Progress = lambda text: None,
    keep: Keep = lambda journal: None,
) -> Certificate:
    """Carry out every step that the scenario asks for; `keep` receives each journal, in which a certificate's evidence has its numbers.

    Everything that it starts has ended, and all storage of its own is gone, when it returns or raises. Raises UsageError for what
    can't be drilled, HarnessError for trouble of the harness.
    """
    check(scenario)
    known, later = known_steps(scenario)
    scenario = _drilled(scenario)
    if scenario.drill.restore_python:
        progress(f"checking {scenario.drill.restore_python}")
        require_interpreter(scenario.drill.restore_python, scenario.target.use, named_environment(scenario))
    mode = gate_mode.choose(scenario)
    progress("starting the first node")
    with closing(open_local(scenario, gate=mode == "seccomp")) as golden:
        shared = storage.make_below(scenario.storage.shared)
        try:
            return _Drill(scenario, invariants, golden, shared, known, later, mode, progress, keep).carry_out()
        finally:
            storage.remove(shared)


def check(scenario: Scenario) -> None:
    """Refuse what can't be drilled, before anything is started. Raises UsageError, with the value and the next step."""
    known_steps(scenario)
    drill, first = scenario.drill, scenario.topology.ranks[0]
    for ranks in drill.restore_ranks:
        check_ranks("drill.restore_ranks", ranks)
        if ranks == first:
            raise UsageError(
                f"drill.restore_ranks has {list(ranks)}, the topology that saves; a drill restores in this topology anyway, so name "
                "other ones, such as [[1]]"
            )
    if drill.restore_python and not Path(drill.restore_python).is_absolute():
        raise UsageError(
            f"drill.restore_python = {drill.restore_python!r} is not an absolute path; write the path of the interpreter, such as "
            "/opt/next/bin/python"
        )
    for name in drill.environment:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"drill.environment has {name!r}, which is no name of an environment variable; write names only: the values come "
                "from the environment of `chaosckpt drill`"
            )
        if name in SET_BY_HARNESS:
            raise UsageError(f"drill.environment has {name!r}, which chaosckpt sets for every rank; remove it")
    _check_numbers(drill)


def _check_numbers(drill: DrillSettings) -> None:
    if not 1 <= drill.interruptions <= MOST_INTERRUPTIONS:
        raise UsageError(f"drill.interruptions = {drill.interruptions} must be from 1 to {MOST_INTERRUPTIONS}")
    if not 0 <= drill.tolerance < math.inf:
        raise UsageError(f"drill.tolerance = {drill.tolerance} must be a number of 0 or more")
    if drill.tolerance and not drill.tolerance_reason.strip():
        raise UsageError(
            f"drill.tolerance = {drill.tolerance} needs drill.tolerance_reason, a sentence with the reason why losses may differ"
        )


def known_steps(scenario: Scenario) -> tuple[int, int]:
    """The step that is saved and restored, and the later one whose save is interrupted: the last two that the workload saves, so that
    there are older checkpoints, too, which must not be taken. Raises UsageError where there are no two."""
    subject_of(scenario).require_target("drill")
    settings = scenario.workload
    saves = settings.save_steps
    if len(saves) < 2:
        raise UsageError(
            f"a drill restores one save and interrupts a later one, but workload.steps = {settings.steps} with workload.save_every = "
            f"{settings.save_every} has only one save; raise steps to {2 * settings.save_every} or more"
        )
    return saves[-2], saves[-1]


def named_environment(scenario: Scenario) -> dict[str, str]:
    """What a fresh allocation is given of this process's environment."""
    return {name: os.environ[name] for name in scenario.drill.environment if name in os.environ}


def _drilled(scenario: Scenario) -> Scenario:
    """A drill confirms what is saved, so that its script awaits its saves whatever the scenario's does; and its nodes are as many as
    any topology needs in which something is restored."""
    ranks = tuple(dict.fromkeys((*scenario.topology.ranks, *scenario.drill.restore_ranks)))
    return msgspec.structs.replace(
        scenario,
        workload=msgspec.structs.replace(scenario.workload, at_end="await"),
        topology=msgspec.structs.replace(scenario.topology, ranks=ranks),
    )


class _Drill:
    def __init__(
        self,
        scenario: Scenario,
        invariants: Sequence[Invariant],
        golden: Arena,
        shared: Path,
        known: int,
        later: int,
        mode: str,
        progress: Progress,
        keep: Keep,
    ) -> None:
        self.scenario = scenario
        self.invariants = invariants
        self.golden = golden
        self.shared = shared
        self.known = known
        self.later = later
        self.mode = mode
        self.progress = progress
        self.keep = keep
        self.subject = TargetSubject(scenario)

    def carry_out(self) -> Certificate:
        first = self.scenario.topology.topologies[0]
        main = self.restart(first)
        interruptions: list[Findings] = []
        changes: list[Carried] = []
        elsewhere: Carried | None = None
        if main.restart.new is not None:
            interruptions = self.interruptions()
            changes = [self.restart(Topology(ranks)) for ranks in self.scenario.drill.restore_ranks]
            if self.scenario.drill.restore_python:
                elsewhere = self.restart(first, self.scenario.drill.restore_python)
        return certificate(
            self.scenario,
            self.subject.guarantees(self.golden),
            Seen(
                known_step=self.known,
                later_step=self.later,
                gate=self.mode,
                main=main,
                interruptions=tuple(interruptions),
                changes=tuple(changes),
                elsewhere=elsewhere,
                file_systems=self.file_systems(),
            ),
        )

    def file_systems(self) -> tuple[FileSystem, ...]:
        """What the tiers lie on."""
        mounts = file_system.parse(file_system.MOUNTS.read_text())
        local = self.scenario.storage.local or tempfile.gettempdir()
        return (
            file_system.describe("shared", self.shared.parent, mounts),
            file_system.describe("local", local, mounts),
        )

    def restart(self, topology: Topology, python: str = "") -> Carried:
        restart = Restarting(
            self.subject,
            self.shared,
            self.golden,
            known_step=self.known,
            topology=topology,
            python=python,
            environment=named_environment(self.scenario),
            progress=self.progress,
        ).run()
        return Carried(restart, self.judged(restart.journal))

    def judged(self, journal: Journal) -> Findings:
        """Keep a journal, and judge it."""
        self.keep(journal)
        return judge(self.scenario, journal, self.invariants)

    def interruptions(self) -> list[Findings]:
        """Kills under the gate; where the later save does nothing on a tier that the gate could see, at stage boundaries."""
        self.progress("rehearsing a run without faults")
        rehearsal = rehearse(self.golden, self.scenario, self.later)
        if rehearsal.points or self.mode != "seccomp":
            return self._interrupt(self.golden, rehearsal)
        self.mode = "none"
        with closing(open_local(self.scenario, self.golden.nodes[0].modules, gate=False)) as arena:
            return self._interrupt(arena, rehearse(arena, self.scenario, self.later))

    def _interrupt(self, arena: Arena, rehearsal: Rehearsal) -> list[Findings]:
        faults = cuts(rehearsal.points, self.scenario.drill.interruptions)
        journals = interrupt(arena, self.subject, faults, rehearsal.deadlines, self.progress)
        return [self.judged(journal) for journal in journals]
