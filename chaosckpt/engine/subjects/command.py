"""A command as subject: an unmodified training script, known by its files, its lines and its result alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from chaosckpt.commands.launches import Warmth
from chaosckpt.commands.naming import Naming, StepFiles, by_step
from chaosckpt.commands.output import matches, told
from chaosckpt.commands.trajectories import BEGINNING
from chaosckpt.engine.golden.command import CommandGolden
from chaosckpt.engine.golden.command_facts import CommandFacts
from chaosckpt.engine.golden.command_run import COLD
from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import (
    files_in_out,
    is_forked,
    open_command_arena,
    program_of,
    result_of,
    same_result,
    why_shared,
)
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.ranks import Record
from chaosckpt.engine.subjects.base import Ended, Launch, Prepared, Subject, SubjectTrial
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.sources import Sources, sources
from chaosckpt.errors import UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, Label
from chaosckpt.model.fault import Fault
from chaosckpt.model.observed import ObservedStep
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import CommandSettings, Scenario
from chaosckpt.model.schedule import Schedule, to_builtins
from chaosckpt.model.summary import TrainingSeen
from chaosckpt.model.topology import Topology
from chaosckpt.plugins import fault_kinds

_NEEDS_NODES = frozenset({"node-loss", "local-storage-loss", "shared-storage-loss"})
"""Kinds that need nodes with storage of their own."""
_NEEDS_A_TARGET = frozenset({"bit-flip", "truncation", "mtimes", "stale-save", "save-retry"})
"""Kinds that change what lies on storage between two attempts, by what a target's census says of it, or the built-in training job."""
_SILENT = frozenset({"cut", "sigkill", "latency"})
"""Kinds that a command doesn't notice while it lives."""


class CommandSubject(Subject):
    """A command. Its golden runs also tell its checkpoints' names, where the user doesn't, and which of its signs can be relied on.

    Golden results are never cached: what a command imports, reads and is told by its environment is known to nobody, and those of an
    earlier version of it would make findings of everything that was changed since.
    """

    spreads = False
    cached = False
    only_for_targets = MappingProxyType(
        {
            "drill": "a drill needs a target, but this scenario has a [command]; test commands with `chaosckpt fuzz`",
            "measure": "measure needs a target (`chaosckpt list targets`), but {name} runs an unmodified command, and chaosckpt cannot "
            "time the saves of a command",
        }
    )
    needs_golden_runs = True

    def __init__(self, scenario: Scenario, command: CommandSettings, prepared: Prepared | None = None) -> None:
        if prepared is not None and prepared.facts is not None:
            facts = prepared.facts
            command = msgspec.structs.replace(command, checkpoints=facts.checkpoints)
            scenario = msgspec.structs.replace(scenario, command=command)
            if facts.topology is not None and facts.topology != scenario.topology.topologies[0]:
                learned = msgspec.structs.replace(scenario.topology, ranks=(facts.topology.ranks,))
                scenario = msgspec.structs.replace(scenario, topology=learned)
        super().__init__(scenario, prepared)
        self.command = command

    def open_arena(self) -> Arena:
        return open_command_arena(self.scenario, self.command, self.warmth)

    @property
    def warmth(self) -> Warmth:
        """How it is launched, as far as that is known."""
        return COLD if self.prepared is None or self.prepared.facts is None else self.prepared.facts.warmth

    def as_launched(self) -> tuple[Subject, Deadlines] | None:
        if self.prepared is None or not self.warmth.modules:
            return None
        facts = msgspec.structs.replace(self.facts, warmth=COLD)
        prepared = msgspec.structs.replace(self.prepared, facts=facts, modules=())
        return CommandSubject(self.scenario, self.command, prepared), facts.cold

    @property
    def launcher(self) -> str:
        return "" if self.prepared is None else self.facts.launcher

    @property
    def training_seen(self) -> TrainingSeen:
        return TrainingSeen() if self.prepared is None else self.facts.observed.summary()

    def sources(self, modules: Sequence[str] = ()) -> Sources:
        directory = Path(self.command.directory)
        scripts = [path for word in self.command.argv if word.endswith(".py") and (path := directory / word).is_file()]
        argv = self.command.argv
        ran = [word for option, word in itertools.pairwise(argv) if option == "-m"]
        return sources(scripts, [*(path.parent for path in scripts), directory], [*ran, *modules], first=True)

    def workers(self, wanted: int) -> tuple[int, str]:
        """One, where its runs would share a network: they may all be told the same port."""
        why = why_shared(self.command) if wanted > 1 else ""
        if not why:
            return wanted, ""
        return 1, (
            f"1 worker instead of {wanted}: {why}, where runs side by side could collide on a port such as MASTER_PORT"
        )

    def golden_runs(self, progress: Callable[[str], None]) -> Prepared:
        if gate_mode.choose(self.scenario) != "seccomp":
            raise UsageError(
                "an unmodified command needs the gate, and the gate does not work on this machine; see `chaosckpt doctor`"
            )
        progress("starting the command's node")
        golden = CommandGolden(
            self.scenario,
            self.command,
            lambda warmth: open_command_arena(self.scenario, self.command, warmth),
            progress,
        )
        census, facts = golden.measure()
        modules = golden.warmth.modules
        launch: Launch = "fork" if modules else "exec"
        return Prepared(census=census, modules=modules, launch=launch, facts=facts, remarks=facts.remarks)

    def kinds(self) -> dict[str, type[Fault]]:
        unfit = _NEEDS_NODES | _NEEDS_A_TARGET
        return {name: kind for name, kind in fault_kinds().items() if name not in unfit}

    def launch(self) -> Launch:
        return "fork" if self.warmth.modules or (self.prepared is None and is_forked(self.command)) else "exec"

    @property
    def facts(self) -> CommandFacts:
        """What its golden runs have shown. Without them a trial of a command has nothing to be compared with."""
        assert self.prepared is not None
        assert self.prepared.facts is not None
        return self.prepared.facts

    def started(self, trial: str, schedule: Schedule, arena: Arena) -> j.TrialStarted:
        return j.TrialStarted(
            trial=trial,
            schedule=to_builtins(schedule),
            guarantees=self.scenario.target.guarantees or arena.nodes[0].facts.guarantees,
            scenario=self.scenario.name,
            total_steps=0,
            judged=self.facts.judged,
            saves=tuple(sorted(self.facts.standard.variants)),
            samples=self.facts.samples,
        )

    def trial(self, arena: Arena, deadlines: Deadlines, record: Record, events: Sequence[j.AnyEvent]) -> CommandTrial:
        assert self.prepared is not None
        return CommandTrial(self.command, self.facts, self.prepared.census, arena, record)


class CommandTrial(SubjectTrial):
    """What the storage of a command held after each attempt, which decides how it is launched and what it is held to."""

    def __init__(
        self, command: CommandSettings, facts: CommandFacts, census: Census, arena: Arena, record: Record
    ) -> None:
        super().__init__(record)
        self._command = command
        self._facts = facts
        self._census = census
        self._arena = arena
        self._naming = Naming(command.checkpoints) if command.checkpoints else None
        self._any_saved = False
        self._newest = 0
        self._files: StepFiles = {}
        self._savers: dict[int, int] = {}
        """The number of ranks of the attempt that wrote to each step's files last."""
        self._as_ever = True
        """Whether nothing but deaths without a word were injected: what gets a signal or an error may save another step."""
        arena.nodes[0].decode(facts.nonces)

    def order(self, number: int, topology: Topology, faults: Sequence[Fault]) -> AttemptOrder:
        resuming = self._any_saved
        return AttemptOrder(
            attempt=number,
            intent="resume" if resuming else "start",
            world_size=topology.world_size,
            places=(),
            faults=tuple(fault.to_builtins() for fault in faults),
            program=msgspec.structs.replace(
                program_of(self._arena, self._command, self._facts.warmth, topology.world_size, resuming=resuming),
                save_numbers=tuple(step for step in self._facts.numbers if step > self._newest),
            ),
        )

    def recorder(self, topology: Topology) -> Record:
        """A record that labels what a fault struck as the golden run does that this attempt follows.

        While a command runs, a temporary name doesn't tell yet of which checkpoint it is going to be a part.
        """
        runs = [self._census.run(topology, self._newest or None), self._census.main]
        labels: dict[Address, Label] = {}
        for golden in reversed([run for run in runs if run is not None]):
            labels.update({point.address: point.label for point in golden.points})

        def record(event: j.AnyEvent) -> None:
            if isinstance(event, j.FaultInjected) and event.operation is not None:
                label = labels.get(event.operation.address)
                event = event if label is None else msgspec.structs.replace(event, label=str(label))
            self._record(event)

        return record

    def after(self, attempt: Ended) -> None:
        """Record what it said, which checkpoints lie on storage, and, at the end, its result."""
        silent = all(fault.kind in _SILENT for fault in attempt.faults)
        self._as_ever = self._as_ever and attempt.topology == attempt.previous and silent
        read = self._record_output(attempt.number, finished=attempt.outcome == "finished")
        self._record_checkpoints(attempt.number, attempt.topology.world_size, read)
        if attempt.closing and attempt.outcome == "finished":
            self._record_result(attempt.number)

    def end(self, last: int) -> None:
        """What lies on storage was recorded after each attempt."""

    def _record_output(self, number: int, *, finished: bool) -> tuple[int, ...]:
        """Record what the command said and what it was refused; returns the steps of which it read files."""
        output = self._arena.nodes[0].output()
        for event in told(output.told, number):
            self._record(event)
            if event.what != "trained" and event.rank == 0:
                words = f"{event.what} step {event.step}, by the probe"
                self._record(j.Said(attempt=number, what=event.what, step=event.step, line=words))
        for what, pattern in (("resumed", self._command.resumed), ("saved", self._command.saved)):
            for step, line in matches(output.printed, pattern):
                self._record(j.Said(attempt=number, what=what, step=step, line=line))  # type: ignore[arg-type]
        self._record_observed(number, output.observed, finished=finished)
        for refused in output.refused:
            self._record(j.Untraced(attempt=number, rank=0, what=f"{refused} was refused", refused=True))
        return output.read

    def _record_observed(self, number: int, seen: Sequence[ObservedStep], *, finished: bool) -> None:
        """Record what each rank trained on from, as it was seen; nothing of one that began anew, as a script says nothing then."""
        positions = self._facts.observed.positions
        if not positions.steps:
            return
        resumed = positions.resumed(seen)
        for rank, step in sorted(resumed.items()):
            if step == BEGINNING:
                continue
            if step is not None:
                self._record(j.Probed(attempt=number, rank=rank, what="resumed", step=step))
            where = "an unknown step" if step is None else f"step {step}"
            line = f"rank {rank} trained on from {where}, as the observer saw it"
            self._record(j.Said(attempt=number, what="resumed", step=step, line=line))
        if finished and not resumed:
            # It has not begun anew: nothing was left to do.
            self._record(
                j.Said(attempt=number, what="resumed", step=None, line="no rank trained, as the observer saw it")
            )

    def _record_checkpoints(self, number: int, ranks: int, read: tuple[int, ...]) -> None:
        """Record which checkpoints lie on storage, complete or not."""
        naming, standard = self._naming, self._facts.standard
        if naming is None:
            return
        there = files_in_out(self._arena)
        files, spare = by_step(there, naming), standard.spare(there, naming)
        self._savers |= {step: ranks for step, found in files.items() if found != self._files.get(step)}
        self._files = files
        differing = standard.looked_at(files, naming, self._facts.numbers, self._savers, as_ever=self._as_ever)
        whole = [step for step, wrong in differing.items() if wrong is None]
        self._newest = max(whole or spare, default=0)
        self._any_saved = self._any_saved or bool(files)
        self._record(
            j.CheckpointsSeen(
                attempt=number,
                complete=tuple(whole),
                partial=tuple(step for step, wrong in differing.items() if wrong is not None),
                differing={step: wrong for step, wrong in differing.items() if wrong is not None},
                read=None if naming.rolling else read,
                spare=spare,
            )
        )

    def _record_result(self, number: int) -> None:
        """Record whether the command's result is that of the uninterrupted run."""
        if "result" not in self._facts.judged:
            return
        found = result_of(self._arena, self._command) or "none"
        equal = same_result(self._facts.result, found, self._command)
        self._record(j.ResultCompared(attempt=number, equal=equal, expected=self._facts.result, seen=found))
