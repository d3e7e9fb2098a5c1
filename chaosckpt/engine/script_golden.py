"""A command's golden runs: its census, what complete checkpoints look like, and which of its signs can be relied on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from chaosckpt.crashstates.replay import replay
from chaosckpt.engine import census_cache
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.messages import AttemptOrder, Labelled
from chaosckpt.engine.script_arena import ScriptArena
from chaosckpt.engine.script_files import seen
from chaosckpt.engine.script_labels import ends_of_saves, labelled, points
from chaosckpt.engine.script_probe import samples_by_step, told
from chaosckpt.engine.script_result import result_of, same_result
from chaosckpt.errors import UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Bare, Census, GoldenRun
from chaosckpt.model.checkpoints import FileSeen, Naming, Standard, by_step, guessed, standard
from chaosckpt.model.command import CommandSettings
from chaosckpt.model.operation import Operation
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology

LARGEST_TRACE_BYTES = 256 << 20
_PATIENT = Deadlines(golden_seconds=60.0, floor_seconds=30.0)
_SHOWN = 1500
Say = Callable[[str], None]
StepFiles = Mapping[int, Mapping[str, tuple[int, str]]]


class CommandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the golden runs of a command have shown, beside its census."""

    checkpoints: str | None = None
    """The glob of its checkpoints: the user's, else the one that its files suggest."""
    standard: Standard = Standard()
    judged: tuple[str, ...] = ()
    """Which signs are known and steady; see TrialStarted.judged."""
    result: str = ""
    """The result of the uninterrupted run: a digest, or what the result command printed."""
    samples: dict[int, tuple[int, ...]] = {}
    """Of a script that tells them: the samples of each step of the uninterrupted run."""
    refused: tuple[str, ...] = ()
    """What the command tried and was not let do, though it finished."""
    remarks: tuple[str, ...] = ()
    """What could not be judged, and why, in sentences."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the command, with all that is to be seen of it."""

    outcome: str
    seconds: float
    trace: tuple[Operation, ...] = ()
    files: tuple[FileSeen, ...] = ()
    output: str = ""
    refused: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    result: str | None = None
    told: tuple[j.Probed, ...] = ()

    def said(self, pattern: str | None, what: str) -> list[int | None]:
        """The numbers in the lines that match, in order, and those that were told by the probe."""
        return [*(step for step, _ in matches(self.output, pattern)), *(at.step for at in self.told if at.what == what)]


def matches(output: str, pattern: str | None) -> list[tuple[int | None, str]]:
    """(number in the first group, line) of every line of the output that matches."""
    if pattern is None:
        return []
    found = []
    for line in output.splitlines():
        match = re.search(pattern, line)
        if match is not None:
            group = match.group(1) if match.re.groups else ""
            found.append((int(group) if group and group.isdigit() else None, line[:300]))
    return found


def launch(
    arena: ScriptArena,
    command: CommandSettings,
    topology: Topology,
    *,
    resuming: bool = False,
    record: str = "operations",
    report_modules: bool = False,
) -> Run:
    """Run the command once, without faults, on the storage as it is."""
    order = AttemptOrder(
        attempt=int(resuming),
        intent="resume" if resuming else "start",
        world_size=topology.world_size,
        places=(),
        record=record,  # type: ignore[arg-type]
        argv=command.words(str(arena.out), topology.world_size, resuming=resuming),
        report_modules=report_modules,
    )
    events: list[j.AnyEvent] = []
    started = time.monotonic()
    outcome = AttemptRun(arena, order, topology, (), events.append, _PATIENT).run()
    seconds = time.monotonic() - started
    node = arena.nodes[0]
    rows = [row for rank in msgspec.convert(node.call("records"), list[list[Labelled]]) for row in rank]
    output, refused, modules, lines = node.call("output")
    return Run(
        outcome=outcome,
        seconds=seconds,
        trace=tuple(row.operation for row in sorted(rows, key=lambda row: row.order)),
        files=seen(arena),
        output=output,
        refused=tuple(refused),
        modules=tuple(modules),
        result=result_of(arena, command),
        told=tuple(told(lines, int(resuming))),
    )


class ScriptGolden:
    """Measures one command on an arena that `warmed` replaces once its imports are known."""

    def __init__(
        self,
        scenario: Scenario,
        arena: ScriptArena,
        warmed: Callable[[ScriptArena, tuple[str, ...]], ScriptArena],
        say: Say,
    ) -> None:
        assert scenario.command is not None
        self.scenario = scenario
        self.command = scenario.command
        self.arena = arena
        self.modules: tuple[str, ...] = ()
        self._warmed = warmed
        self._say = say
        self._naming = Naming(self.command.checkpoints) if self.command.checkpoints else None
        self._remarks: list[str] = []

    def measure(self) -> tuple[Census, CommandFacts]:
        """The census and the facts. Raises UsageError, with what the command printed, where it doesn't run without any fault."""
        first, *others = self.scenario.topology.topologies
        self._say("golden run, cold")
        one = self._finished(launch(self.arena, self.command, first, report_modules=True), "the first golden run")
        self.modules = one.modules
        self._take_a_guess(one)
        if one.modules:
            self._say("warming up")
            self.arena = self._warmed(self.arena, one.modules)
        self.arena.reset()
        self._say("golden run, once more")
        size = sum(operation.length or 0 for operation in one.trace if operation.address.op == "write")
        record = "data" if size <= LARGEST_TRACE_BYTES else "operations"
        two = self._finished(launch(self.arena, self.command, first, record=record), "the second golden run")
        self._check(one, two)
        return self._measured(first, others, one, two, with_data=record == "data")

    def _take_a_guess(self, run: Run) -> None:
        """Without a glob of the user's, the files of a run may suggest one."""
        if self._naming is not None:
            return
        glob = guessed(path for path, _, _ in run.files)
        if glob is None:
            self._remarks.append(
                "no --checkpoints was given and no files look like them: only crashes, hangs and exit codes are judged"
            )
            return
        self.command = msgspec.structs.replace(self.command, checkpoints=glob)
        self._naming = Naming(glob)
        self._remarks.append(f"no --checkpoints was given: {glob} was taken from the files that the command writes")

    def _measured(
        self, first: Topology, others: Sequence[Topology], one: Run, two: Run, *, with_data: bool
    ) -> tuple[Census, CommandFacts]:
        naming = self._naming
        # What comes in one run and not in the other depends on luck: no fault is aimed at it, because it would often miss.
        runs = [_steady(self._golden(first, None, two), one)]
        kept: list[StepFiles] = []
        saved_at: dict[int, int] = {}
        resumed: list[Run] = []
        bare: tuple[Bare, ...] = ()
        prefixes = 0
        if naming is not None:
            kept = [by_step(run.files, naming) for run in (one, two)]
            saved_at = ends_of_saves(two.trace, naming)
            if with_data:
                kept.append(self._as_saved(two.trace, saved_at, naming))
            for step, place in saved_at.items():
                if not with_data:
                    break
                self._say(f"golden recovery from step {step}")
                for topology in (first, *others):
                    self._put_back(two.trace, place)
                    again = launch(self.arena, self.command, topology, resuming=True)
                    runs.append(self._golden(topology, step, again))
                    if again.outcome == "finished":
                        kept.append(_new_steps(by_step(again.files, naming), step))
                    if topology == first:
                        resumed.append(again)
            if with_data:
                bare, prefixes = self._bareness(two.trace, saved_at, standard(kept), naming)
        facts = self._facts(one, two, saved_at, resumed, standard(kept))
        census = Census(runs=tuple(runs), environment=census_cache.environment(), bare=bare, prefixes=prefixes)
        return census, facts

    def _golden(self, topology: Topology, resumed_from: int | None, run: Run) -> GoldenRun:
        if self._naming is None:
            return GoldenRun(
                topology=topology, resumed_from=resumed_from, points=_unnamed(run.trace), duration_seconds=run.seconds
            )
        found = points(run.trace, self._naming)
        commits: dict[int, int] = {}
        for index, point in enumerate(found):
            if point.label.step is not None and point.label.stage != "retire" and not point.reads:
                commits[point.label.step] = index
        return GoldenRun(
            topology=topology,
            resumed_from=resumed_from,
            points=found,
            commits=commits,
            saves=tuple(sorted(commits)),
            duration_seconds=run.seconds,
        )

    def _as_saved(self, trace: Sequence[Operation], saved_at: Mapping[int, int], naming: Naming) -> StepFiles:
        """The files of each step as they were when its save's last operation was over."""
        found: dict[int, dict[str, tuple[int, str]]] = {}
        for step, place in saved_at.items():
            self._put_back(trace, place)
            found[step] = by_step(seen(self.arena), naming).get(step, {})
        return found

    def _put_back(self, trace: Sequence[Operation], place: int) -> None:
        """Make the storage what it was after the operation at this place of the trace."""
        self.arena.reset()
        replay(trace[: place + 1], {tier: Path(path) for tier, path in self.arena.tiers(0).items()})

    def _bareness(
        self, trace: Sequence[Operation], saved_at: Mapping[int, int], measured: Standard, naming: Naming
    ) -> tuple[tuple[Bare, ...], int]:
        """At which operations after the first finished save no complete checkpoint as new as the last one lies on storage."""
        labels = labelled(trace, naming)
        found, tried = [], 0
        for place, (operation, label) in enumerate(zip(trace, labels, strict=True)):
            finished = [step for step, end in saved_at.items() if end <= place]
            if (
                not finished
                or label is None
                or label.step is None
                or operation.address.op in ("fsync", "close", "write")
            ):
                continue
            tried += 1
            self._put_back(trace, place)
            files = by_step(seen(self.arena), naming)
            whole = [step for step in files if measured.differing(step, files[step]) is None]
            newest = max(whole, default=None)
            if newest is None or newest < max(finished):
                found.append(Bare(operation.address, max(finished), newest))
        return tuple(found), tried

    def _finished(self, run: Run, what: str) -> Run:
        if run.outcome == "finished":
            return run
        refused = f"; it was refused: {'; '.join(run.refused[:5])} (--allow, --allow-network)" if run.refused else ""
        tail = run.output.strip()[-_SHOWN:] or "nothing"
        raise UsageError(f"{what} of the command {run.outcome}, without any fault{refused}; it printed: {tail}")

    def _check(self, one: Run, two: Run) -> None:
        """Refuse signs that never show. Raises UsageError."""
        command = self.command
        if self._naming is not None and not ends_of_saves(two.trace, self._naming):
            there = ", ".join(sorted({path for path, _, _ in two.files})[:8]) or "nothing"
            raise UsageError(
                f"--checkpoints {command.checkpoints!r} never matches: the command left {there} (out: is {{out}})"
            )
        if command.saved is not None and not two.said(command.saved, "saved"):
            raise UsageError(
                f"--saved {command.saved!r} matches no line of the output: {two.output.strip()[-_SHOWN:] or 'nothing'}"
            )
        if command.result is not None and two.result is None:
            raise UsageError(f"--result {command.result!r}: there is no such file after the golden run")
        if command.result_command is not None and two.result is None:
            raise UsageError(f"--result-cmd {command.result_command!r} fails, or prints nothing, after the golden run")

    def _facts(
        self, one: Run, two: Run, saved_at: Mapping[int, int], resumed: Sequence[Run], measured: Standard
    ) -> CommandFacts:
        command, judged, remarks, result = self.command, [], self._remarks, ""
        if saved_at:
            judged.append("checkpoints")
            if not measured.same_content:
                remarks.append(
                    "no file of a checkpoint has the same content in all golden runs, resumed ones included: "
                    "completeness is judged by names and sizes"
                )
        tells = {
            what: any(at.what == what for run in (two, *resumed) for at in run.told) for what in ("resumed", "saved")
        }
        missing = [
            f"with {option} it would also be judged {what}"
            for option, value, what in (
                ("--resumed", command.resumed or (tells["resumed"] or None), "which checkpoint is resumed from"),
                ("--saved", command.saved or (tells["saved"] or None), "whether what is said to be saved is there"),
                (
                    "--result",
                    command.result or command.result_command,
                    "whether the end is that of an uninterrupted run",
                ),
            )
            if value is None
        ]
        remarks += missing
        if command.resumed is not None or tells["resumed"]:
            steps = [run.said(command.resumed, "resumed") for run in resumed]
            if resumed and not any(steps):
                raise UsageError(
                    f"--resumed {command.resumed!r} matches no line of a run that had a checkpoint to resume from; it printed: "
                    f"{resumed[0].output.strip()[-_SHOWN:] or 'nothing'}"
                )
            judged.append("resumed")
            if _say_their_step(tuple(saved_at), steps):
                judged.append("resumes")
        if command.saved is not None or tells["saved"]:
            judged.append("saved")
        if one.result is not None and two.result is not None:
            if same_result(one.result, two.result, command):
                judged.append("result")
                result = two.result
                ends = [run.result for run in resumed if run.outcome == "finished"]
                if ends and all(end is not None and same_result(result, end, command) for end in ends):
                    judged.append("exact")
            else:
                remarks.append(
                    f"two golden runs end with different results ({one.result} and {two.result}): the command is not deterministic, so "
                    "whether a resumed run's result differs is not judged"
                )
        return CommandFacts(
            samples=samples_by_step(two.told) if samples_by_step(one.told) == samples_by_step(two.told) else {},
            checkpoints=command.checkpoints,
            standard=measured,
            judged=tuple(judged),
            result=result,
            refused=two.refused,
            remarks=tuple(remarks),
        )


def _say_their_step(saved: Sequence[int], said: Sequence[Sequence[int | None]]) -> bool:
    """Whether each golden recovery said the very step that it was given, and no other.

    From the last step there may be nothing left to do, so that it may say nothing.
    """
    told = list(zip(saved, map(set, said), strict=False))
    return bool(told) and all(
        steps == {step} or (not steps and place > 0 and place == len(told) - 1)
        for place, (step, steps) in enumerate(told)
    )


def _steady(run: GoldenRun, other: Run) -> GoldenRun:
    """The run without the operations that another run from the start did not do."""
    known = {operation.address for operation in other.trace}
    kept = [index for index, point in enumerate(run.points) if point.address in known]
    place = {old: new for new, old in enumerate(kept)}
    return msgspec.structs.replace(
        run,
        points=tuple(run.points[index] for index in kept),
        commits={step: place[index] for step, index in run.commits.items() if index in place},
    )


def _new_steps(files: StepFiles, resumed_from: int) -> StepFiles:
    """Only the steps that a resumed run saved itself."""
    return {step: found for step, found in files.items() if step > resumed_from}


def _unnamed(trace: Sequence[Operation]) -> tuple[()]:
    """Without a glob nobody knows which operations belong to a checkpoint."""
    return ()
