"""One trial of a command: its schedule executed, with what it said and what lay on storage after each attempt."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from chaosckpt.engine.attempt import AttemptRun, Record
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.messages import AttemptOrder
from chaosckpt.engine.script_arena import ScriptArena
from chaosckpt.engine.script_facts import CommandFacts
from chaosckpt.engine.script_files import seen
from chaosckpt.engine.script_probe import told
from chaosckpt.engine.script_result import result_of, same_result
from chaosckpt.engine.script_run import matches
from chaosckpt.engine.script_warm import PROMISES
from chaosckpt.engine.trial import ObserveStorage, journalled, strike_between
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, Label
from chaosckpt.model.checkpoints import Naming, StepFiles, by_step
from chaosckpt.model.command import CommandSettings
from chaosckpt.model.fault import Fault
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule, to_builtins
from chaosckpt.model.topology import Topology


def run_script_trial(
    scenario: Scenario,
    schedule: Schedule,
    arena: ScriptArena,
    facts: CommandFacts,
    *,
    census: Census,
    trial: str,
    deadlines: Deadlines,
    write: Callable[[j.AnyEvent], None] = lambda event: None,
    observe_storage: ObserveStorage | None = None,
) -> j.Journal:
    """Run every attempt of the schedule, then a closing one without faults, on emptied storage.

    `write` receives each event as it happens, `observe_storage` is called as in `run_trial`. Harness trouble stands in the journal
    and is raised as well.
    """
    started = j.TrialStarted(
        trial=trial,
        schedule=to_builtins(schedule),
        guarantees=scenario.target.guarantees or PROMISES,
        scenario=scenario.name,
        total_steps=0,
        judged=facts.judged,
        saves=tuple(sorted(facts.standard.variants)),
        samples=facts.samples,
    )
    return journalled(
        started,
        arena,
        write,
        lambda record, events: _ScriptTrial(scenario, arena, facts, census, deadlines, record, observe_storage).run(
            schedule
        ),
    )


_SILENT = frozenset({"cut", "sigkill", "latency"})
"""Kinds of faults that a command doesn't notice while it lives."""


class _ScriptTrial:
    def __init__(
        self,
        scenario: Scenario,
        arena: ScriptArena,
        facts: CommandFacts,
        census: Census,
        deadlines: Deadlines,
        record: Record,
        observe_storage: ObserveStorage | None,
    ) -> None:
        assert scenario.command is not None
        self.scenario = scenario
        self.command: CommandSettings = scenario.command
        self.arena = arena
        self.facts = facts
        self.census = census
        self.deadlines = deadlines
        self.record = record
        self.observe_storage = observe_storage
        self.naming = Naming(self.command.checkpoints) if self.command.checkpoints else None
        self.any_saved = False
        self.newest = 0
        self.files: StepFiles = {}
        self.savers: dict[int, int] = {}
        """The number of ranks of the launch that wrote to each step's files last."""

        self.as_ever = True
        """Whether nothing but deaths without a word has struck: what gets a signal or an error may save another step."""

    def run(self, schedule: Schedule) -> None:
        """All attempts, the closing one included."""
        self.arena.nodes[0].call("decode", self.facts.nonces)
        first = self.scenario.topology.topologies[0]
        plans = (*schedule.attempts, AttemptPlan())
        previous = first
        for number, (plan, topology) in enumerate(zip(plans, schedule.topologies(first), strict=True)):
            self.attempt(number, plan.faults, topology, previous, closing=number == len(plans) - 1)
            previous = topology
        if self.observe_storage is not None:
            self.observe_storage(len(plans), self.arena)

    def attempt(
        self, number: int, faults: tuple[Fault, ...], topology: Topology, previous: Topology, *, closing: bool
    ) -> None:
        """One launch of the command."""
        resuming = self.any_saved
        order = AttemptOrder(
            attempt=number,
            intent="resume" if resuming else "start",
            world_size=topology.world_size,
            places=(),
            faults=tuple(fault.to_builtins() for fault in faults),
            argv=self.command.words(str(self.arena.out), topology.world_size, resuming=resuming),
            save_numbers=tuple(step for step in self.facts.numbers if step > self.newest),
        )
        record = self._with_labels(topology)
        run = AttemptRun(self.arena, order, topology, faults, record, self.deadlines)
        strike_between(run, faults, number, previous, self.record)
        if self.observe_storage is not None:
            self.observe_storage(number, self.arena)
        self.record(
            j.AttemptStarted(
                attempt=number,
                ranks=topology.ranks,
                intent=order.intent,
                closing=closing,
                launch="fork" if self.arena.warm else "exec",
            )
        )
        self.as_ever = self.as_ever and topology == previous and all(fault.kind in _SILENT for fault in faults)
        outcome = run.run()
        read = self._listen(number)
        self._look(number, topology.world_size, read)
        if closing and outcome == "finished":
            self._compare(number)

    def _with_labels(self, topology: Topology) -> Record:
        """A record that labels what a fault struck as the golden run does that this launch follows.

        While a command runs, a temporary name doesn't tell yet of which checkpoint it is going to be a part.
        """
        runs = [self.census.run(topology, self.newest or None), self.census.main]
        labels: dict[Address, Label] = {}
        for golden in reversed([run for run in runs if run is not None]):
            labels.update({point.address: point.label for point in golden.points})

        def record(event: j.AnyEvent) -> None:
            if isinstance(event, j.FaultLanded) and event.operation is not None:
                label = labels.get(event.operation.address)
                event = event if label is None else msgspec.structs.replace(event, label=str(label))
            self.record(event)

        return record

    def _listen(self, number: int) -> tuple[int, ...]:
        """Journal what the command said and what it was refused; returns the steps of which it read files."""
        output, refused, _, lines, read = self.arena.nodes[0].call("output")
        for event in told(lines, number):
            self.record(event)
            if event.what != "trained" and event.rank == 0:
                words = f"{event.what} step {event.step}, by the probe"
                self.record(j.Said(attempt=number, what=event.what, step=event.step, line=words))
        for what, pattern in (("resumed", self.command.resumed), ("saved", self.command.saved)):
            for step, line in matches(output, pattern):
                self.record(j.Said(attempt=number, what=what, step=step, line=line))  # type: ignore[arg-type]
        for what in refused:
            self.record(j.Untraced(attempt=number, rank=0, what=f"{what} was refused", refused=True))
        return tuple(read)

    def _look(self, number: int, ranks: int, read: tuple[int, ...]) -> None:
        """Journal which checkpoints lie on storage, complete or not."""
        if self.naming is None:
            return
        there = seen(self.arena)
        files, spare = by_step(there, self.naming), self.facts.standard.spare(there, self.naming)
        self.savers |= {step: ranks for step, found in files.items() if found != self.files.get(step)}
        self.files = files
        differing = self.facts.standard.looked_at(
            files, self.naming, self.facts.numbers, self.savers, as_ever=self.as_ever
        )
        whole = [step for step, wrong in differing.items() if wrong is None]
        self.newest = max(whole or spare, default=0)
        self.any_saved = self.any_saved or bool(files)
        self.record(
            j.CheckpointsSeen(
                attempt=number,
                complete=tuple(whole),
                partial=tuple(step for step, wrong in differing.items() if wrong is not None),
                differing={step: wrong for step, wrong in differing.items() if wrong is not None},
                read=None if self.naming.rolling else read,
                spare=spare,
            )
        )

    def _compare(self, number: int) -> None:
        """Journal whether the command's result is that of the uninterrupted run."""
        if "result" not in self.facts.judged:
            return
        found = result_of(self.arena, self.command) or "none"
        equal = same_result(self.facts.result, found, self.command)
        self.record(j.ResultCompared(attempt=number, equal=equal, expected=self.facts.result, seen=found))
