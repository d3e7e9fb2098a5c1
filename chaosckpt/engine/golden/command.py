"""A command's golden runs: its census, what complete checkpoints look like, and which of its signs can be relied on."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import msgspec

from chaosckpt.commands.completeness import CompletenessModel, standard
from chaosckpt.commands.labels import ends_of_saves, labelled, points
from chaosckpt.commands.launches import Warmth, launcher_of
from chaosckpt.commands.naming import (
    ROLLING,
    Naming,
    StepFiles,
    by_step,
    guessed,
    guessed_rolling,
)
from chaosckpt.commands.random_names import random_parts
from chaosckpt.commands.rolling import made_anew
from chaosckpt.engine.golden import cache
from chaosckpt.engine.golden.command_facts import SHOWN, CommandFacts, Golden, facts_of
from chaosckpt.engine.golden.command_run import COLD, Run, order_of, run_command
from chaosckpt.engine.golden.observing import Observed, observed
from chaosckpt.engine.golden.reach import QUIESCENCE_BY_TIME, quiescence_when_held, reach, single_step
from chaosckpt.engine.golden.recovery import spread
from chaosckpt.engine.golden.rewind import FilesInOut, rewind, rewound
from chaosckpt.engine.golden.warm_launch import Launches, common_names, paths_of, unlike
from chaosckpt.engine.node.rank_process import decoded_by
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import files_in_out, why_shared
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.storage import shortage
from chaosckpt.errors import UsageError
from chaosckpt.model.census import Census, GoldenRun, RecoveryGap
from chaosckpt.model.operation import Operation
from chaosckpt.model.scenario import CommandSettings, Scenario
from chaosckpt.model.topology import Topology

LARGEST_TRACE_BYTES = 256 << 20
_MOST_PREFIXES = 1000
"""After so many operations of a run, spread evenly, a complete checkpoint is looked for at most."""
_TRIES = 2
_UNREACHED = re.compile("connection refused|unreachable|name resolution|name or service not known", re.IGNORECASE)
"""What programs print when they don't find a peer."""
_PERMIT = " (permit with --allow or --allow-network)"


class CommandGolden:
    """Measures one command, on one arena after another: `open_arena` makes one that is as warm as it is told."""

    def __init__(
        self,
        scenario: Scenario,
        command: CommandSettings,
        open_arena: Callable[[Warmth], Arena],
        progress: Callable[[str], None],
    ) -> None:
        self.scenario = scenario
        self.command = command
        self.arena: Arena
        self.warmth = COLD
        self._open_arena = open_arena
        self._progress = progress
        self._naming = Naming(self.command.checkpoints) if self.command.checkpoints else None
        self._remarks: list[str] = []
        self._numbers: tuple[int, ...] = ()
        self._cold = Deadlines()
        self._nonces: tuple[str, ...] = ()

    def measure(self) -> tuple[Census, CommandFacts]:
        """The census and the facts. Raises UsageError, with what the command printed, where it doesn't run without any fault."""
        first, *others = self.scenario.topology.topologies
        launches = Launches(self.command)
        with closing(self._open_arena(COLD)) as self.arena:
            self._progress("golden run, cold")
            one = again = self._finished(self._run(first, learns=True), "the first golden run")
            self._cold = Deadlines(golden_seconds=one.seconds, pauses=one.pauses)
            first = launches.take(one, self.arena, first)
            for other in others if launches.found else ():
                self._progress(f"golden run of {other} ranks, cold")
                self.arena.reset()
                launches.take(self._finished(self._run(other, learns=True), "a golden run"), self.arena, other)
        if one.modules and (launches.found or launches.alone):
            # Both of this pair are cold, so that being warm can't hide what differs from run to run. In another directory, since what
            # holds the path of {out} differs from trial to trial.
            with closing(self._open_arena(COLD)) as self.arena:
                self._progress("golden run, cold, second time")
                again = self._finished(self._run(first), "the second golden run")
        cold = (one, again)
        glob = self._guess(one)
        size = sum(operation.length or 0 for operation in one.trace if operation.address.op == "write")
        record = "data" if size <= LARGEST_TRACE_BYTES else "operations"
        with ExitStack() as opened:
            two = self._warmest(opened, first, one, again, launches, record)
            one, two = self._alike(first, one, two, record)
            if glob is not None:
                self._take(guessed([path for path, _, _ in one.files]) or glob)
            self._check(one, two)
            self._again = again
            self._uninterrupted = cold
            return self._measured(first, others, one, two, with_data=record == "data")

    def _warmest(
        self, opened: ExitStack, topology: Topology, one: Run, again: Run, launches: Launches, record: str
    ) -> Run:
        """A golden run in the warmest way that does what the cold ones did; its arena stays open."""
        why = launches.why
        for warmth in launches.warmths(one.modules):
            if (warmth.modules, warmth.launches) != (self.warmth.modules, self.warmth.launches) or warmth == COLD:
                opened.close()
                self._progress("warming up" if warmth.modules else "golden run, second time")
                # In another directory, for the same reason.
                self.arena = opened.enter_context(closing(self._open_arena(warmth)))
            self.warmth = warmth
            if warmth.launches and self.arena.nodes[0].threads > 1:
                why = (
                    f"importing its modules leaves {self.arena.nodes[0].threads} threads running, which can't be forked"
                )
                continue
            self._progress("golden run, warm" if warmth.modules else "golden run, second time")
            self.arena.reset()
            two = self._run(topology, record=record)
            if warmth == COLD or (not warmth.launches and not warmth.short_end):
                break
            if not (differs := unlike(one, again, two, common_names(one, two))):
                return two
            why = f"every launch goes through {launcher_of(self.command.argv)}, cold: {differs}"
        if why and (launches.found or launches.why):
            self._remarks.append(why)
        return self._finished(two, "the second golden run")

    def _run(self, topology: Topology, **more: Any) -> Run:
        return run_command(self.arena, self.command, topology, self.warmth, progress=self._progress, **more)

    def _alike(self, topology: Topology, one: Run, two: Run, record: str) -> tuple[Run, Run]:
        """Two golden runs in which the random parts of names read alike: run again where there are any.

        What the first one left stays that of the run in another directory.
        """
        elsewhere = one
        for _ in range(_TRIES):
            own, other = (self._decoded(paths_of(run)) for run in (one, two))
            found = random_parts(own, other, socket.gethostname())
            if not found:
                break
            self._nonces = (*self._nonces, *found)
            self._progress("golden runs again, because file names differ between runs")
            self.arena.nodes[0].decode(self._nonces)
            self.arena.reset()
            one = self._finished(self._run(topology), "a golden run")
            self.arena.reset()
            two = self._finished(self._run(topology, record=record), "a golden run")
        paths = self._decoded([path for path, _, _ in elsewhere.files])
        files = tuple((path, *seen[1:]) for path, seen in zip(paths, elsewhere.files, strict=True))
        return msgspec.structs.replace(one, files=files, result=elsewhere.result, told=elsewhere.told), two

    def _decoded(self, paths: Sequence[str]) -> list[str]:
        return decoded_by(self._nonces)(paths)

    def _guess(self, run: Run) -> str | None:
        """Without a glob of the user's, the one that the files of a run suggest."""
        if self._naming is not None:
            return None
        files = [path for path, _, _ in run.files]
        glob = guessed(files) or guessed_rolling(made_anew(run.trace), files)
        if glob is None:
            there = ", ".join(files[:8]) or "nothing"
            raise UsageError(
                f"none of the files that the command left looks like a checkpoint; name the checkpoints with --checkpoints, as in "
                f"'{{out}}/ckpt-*'. The command left: {there} (out: stands for {{out}})"
            )
        return glob

    def _take(self, glob: str) -> None:
        """Go on with a glob that was guessed."""
        self.command = msgspec.structs.replace(self.command, checkpoints=glob)
        self._naming = Naming(glob)
        self._remarks.append(
            f"--checkpoints was not given; chaosckpt took {glob} from the names of the files that the command writes"
        )

    def _measured(
        self, first: Topology, others: Sequence[Topology], one: Run, two: Run, *, with_data: bool
    ) -> tuple[Census, CommandFacts]:
        naming = self._naming
        assert naming is not None
        self._numbers = self._numbered(first, two, naming) if naming.rolling and with_data else ()
        # What comes in one run and not in the other depends on luck: no fault is aimed at it, because it would often miss.
        runs = [_steady(self._golden(first, None, two), one)]
        runs[0] = self._with_reach(runs[0])
        saved_at = ends_of_saves(two.trace, naming, self._numbers)
        kept = [(first.world_size, self._by_step(run, tuple(saved_at), naming)) for run in (one, self._again, two)]
        resumed: list[Run] = []
        gaps: tuple[RecoveryGap, ...] = ()
        prefixes = 0
        if with_data:
            kept.append((first.world_size, self._as_saved(two.trace, saved_at, naming)))
            for step, place in saved_at.items():
                self._progress(f"golden recovery from step {step}")
                for topology in (first, *others):
                    again = self._resumed(two, place, topology)
                    runs.append(self._golden(topology, step, again))
                    if again.outcome == "finished":
                        found = _new_steps(self._by_step(again, tuple(saved_at), naming), step)
                        kept.append((topology.world_size, found))
                    if naming.rolling:
                        found = self._as_resumed(two.trace[: place + 1], again, step, naming)
                        kept.append((topology.world_size, found))
                    if topology == first:
                        resumed.append(again)
        measured = standard((files for _, files in kept), (world for world, _ in kept))
        if with_data:
            gaps, prefixes = self._gaps(first, two.trace, saved_at, measured, naming)
        golden = Golden(
            one=one, again=self._again, two=two, resumed=tuple(resumed), saved=tuple(saved_at), standard=measured,
            numbers=self._numbers, rolling=naming.rolling, nonces=self._nonces,
            observed=observed((*self._uninterrupted, two), dict(zip(saved_at, resumed, strict=False)))
            if not self.command.no_observe else Observed(why="--no-observe was given"),
        )  # fmt: skip
        facts = msgspec.structs.replace(
            facts_of(self.command, golden, self._remarks),
            warmth=self.warmth,
            launcher=launcher_of(self.command.argv),
            cold=self._cold,
            topology=first,
        )
        census = Census(runs=tuple(runs), environment=cache.environment(), gaps=gaps, prefixes=prefixes)
        return census, facts

    def _with_reach(self, run: GoldenRun) -> GoldenRun:
        """How far the others get while one rank is held, and how rest is told then. Raises UsageError where it never comes to rest.

        Of a tree of processes that its launcher started it isn't known which of them wait for which.
        """
        if self.warmth.launches and run.topology.world_size > 1 and not self.command.track:
            self._progress("reach of every operation")
            samples, by_time = single_step(
                self.arena, order_of(self.arena, self.command, run.topology, self.warmth), run.topology, _deadlines(run)
            )
            if samples:
                self._remarks += [QUIESCENCE_BY_TIME] if by_time else []
                return msgspec.structs.replace(run, reach=reach(run, samples), by_time=by_time)
        return msgspec.structs.replace(run, by_time=self._quiescent_by_time(run))

    def _quiescent_by_time(self, run: GoldenRun) -> bool:
        """Whether it comes to rest by time only while its first save is held. Raises UsageError where it never does."""
        place = next((point.address for point in run.points if not point.reads and point.label.step is not None), None)
        if place is None:
            return False
        self._progress("a run held at its first save, to see that all else comes to rest")
        order = order_of(self.arena, self.command, run.topology, self.warmth)
        by_time = quiescence_when_held(
            self.arena, order, run.topology, _deadlines(run), place, go_on=bool(self.command.track)
        ) in ("idle", "busy")
        self._remarks += [QUIESCENCE_BY_TIME] if by_time else []
        return by_time

    def _resumed(self, run: Run, place: int, topology: Topology) -> Run:
        """A golden recovery on the storage as it was after this place of a run."""
        self._rewind(run.trace, place)
        record = "data" if self._naming is not None and self._naming.rolling else "operations"
        return self._run(topology, resuming=True, record=record)

    def _numbered(self, topology: Topology, run: Run, naming: Naming) -> tuple[int, ...]:
        """The steps of the saves of a rolling checkpoint, by what the command says of them; counted where it says nothing."""
        places = ends_of_saves(run.trace, naming)
        told = run.said(self.command.saved, "saved")
        if _numbers(told, len(places)) is None and self.command.resumed is not None:
            told = []
            for number, place in places.items():
                self._progress(f"golden recovery from save {number}, to learn the step of the save")
                said = set(self._resumed(run, place, topology).said(self.command.resumed, "resumed"))
                told += said if len(said) == 1 else [None]
        numbers = _numbers(told, len(places))
        if numbers is None:
            self._remarks.append(
                f"neither names nor printed lines show the steps of the checkpoints, so the saves are numbered 1 to {len(places)}"
            )
        return numbers or tuple(places)

    def _by_step(self, run: Run, saved: Sequence[int], naming: Naming) -> StepFiles:
        """The files of each step at the end of a run; those of a rolling checkpoint are the last save's."""
        files = by_step(run.files, naming)
        return {max(saved): found for found in files.values()} if naming.rolling and saved else files

    def _golden(self, topology: Topology, resumed_from: int | None, run: Run) -> GoldenRun:
        assert self._naming is not None
        found = points(run.trace, self._naming, [step for step in self._numbers if step > (resumed_from or 0)])
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
            pauses=run.pauses,
        )

    def _as_saved(self, trace: Sequence[Operation], saved_at: Mapping[int, int], naming: Naming) -> StepFiles:
        """The files of each step as they were when its save's last operation was over."""
        found: dict[int, dict[str, tuple[int, str]]] = {}
        for step, place in saved_at.items():
            self._rewind(trace, place)
            found[step] = by_step(files_in_out(self.arena), naming).get(ROLLING if naming.rolling else step, {})
        return found

    def _as_resumed(self, before: Sequence[Operation], run: Run, resumed_from: int, naming: Naming) -> StepFiles:
        """The same for a run that was resumed on what these operations had left."""
        numbers = [step for step in self._numbers if step > resumed_from]
        ends = ends_of_saves(run.trace, naming, numbers)
        return self._as_saved(
            (*before, *run.trace), {step: len(before) + place for step, place in ends.items()}, naming
        )

    def _rewind(self, trace: Sequence[Operation], place: int) -> None:
        """Make the storage what it was after the operation at this place of the trace."""
        rewind(self.arena, trace[: place + 1], len(self.command.track))

    def _gaps(
        self,
        first: Topology,
        trace: Sequence[Operation],
        saved_at: Mapping[int, int],
        measured: CompletenessModel,
        naming: Naming,
    ) -> tuple[tuple[RecoveryGap, ...], int]:
        """At which operations after the first finished save no complete checkpoint as new as the last one lies on storage."""
        labels = labelled(trace, naming, self._numbers)
        worlds = dict.fromkeys(saved_at, first.world_size)
        first_end = min(saved_at.values(), default=len(trace))
        telling = [
            place
            for place, (operation, label) in enumerate(zip(trace, labels, strict=True))
            if place >= first_end
            and label is not None
            and label.step is not None
            and operation.address.op not in ("fsync", "close", "write")
        ]
        tried, found = frozenset(spread(telling, _MOST_PREFIXES)), []
        self._progress(f"looking for a complete checkpoint after {len(tried)} of {len(trace)} operations")
        files = FilesInOut(self.arena, trace, lambda path: self._decoded([path])[0])
        for place, operation in enumerate(rewound(self.arena, trace, len(self.command.track))):
            files.applied(operation)
            if place not in tried:
                continue
            finished = [step for step, end in saved_at.items() if end <= place]
            there = files.now()
            found_there = measured.looked_at(by_step(there, naming), naming, (), worlds)
            whole = [step for step, wrong in found_there.items() if wrong is None] + [*measured.spare(there, naming)]
            newest = max(whole, default=None)
            if newest is None or newest < max(finished):
                found.append(RecoveryGap(operation.address, max(finished), newest))
        return tuple(found), len(tried)

    def _finished(self, run: Run, what: str) -> Run:
        if run.outcome == "finished":
            return run
        permitted = "" if all(what.startswith(("SIG", "signal ")) for what in run.refused) else _PERMIT
        refused = f"; chaosckpt refused: {'; '.join(run.refused[:5])}{permitted}" if run.refused else ""
        if not refused and not why_shared(self.command) and _UNREACHED.search(run.output):
            refused = (
                "; it runs in a network of its own, without other machines and without what listens on this one (give it this "
                "machine's with --allow-network)"
            )
        tail = run.output.strip()[-SHOWN:] or "nothing"
        waited = f" ({run.waited})" if run.outcome == "hung" and run.waited else ""
        raise UsageError(
            f"{what} of the command {run.outcome} without any fault{waited}{refused}{shortage(self.arena.directory)}; output: {tail}"
        )

    def _check(self, one: Run, two: Run) -> None:
        """Refuse signs that never show. Raises UsageError."""
        command = self.command
        if self._naming is not None and not ends_of_saves(two.trace, self._naming):
            there = ", ".join(sorted({path for path, _, _ in two.files})[:8]) or "nothing"
            raise UsageError(
                f"--checkpoints {command.checkpoints!r} matches no file; the command left {there} (out: stands for {{out}})"
            )
        if command.saved is not None and not two.said(command.saved, "saved"):
            raise UsageError(
                f"--saved {command.saved!r} matches no line of the output, which is: {two.output.strip()[-SHOWN:] or 'nothing'}"
            )
        if command.result is not None and two.result is None:
            raise UsageError(f"--result {command.result!r} does not exist after the golden run")
        if command.result_command is not None and two.result is None:
            raise UsageError(f"--result-cmd {command.result_command!r} failed or printed nothing after the golden run")


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


def _deadlines(run: GoldenRun) -> Deadlines:
    """Those of a run in which operations are held."""
    return Deadlines(golden_seconds=max(2.5, run.duration_seconds), pauses=run.pauses)


def _new_steps(files: StepFiles, resumed_from: int) -> StepFiles:
    """Only the steps that a resumed run saved itself."""
    return {step: found for step, found in files.items() if step > resumed_from}


def _numbers(said: Sequence[int | None], count: int) -> tuple[int, ...] | None:
    """The steps of so many saves, as they were said; None where that can't be so."""
    known = [step for step in said if step is not None]
    ascending = all(step < later for step, later in itertools.pairwise(known))
    return tuple(known) if len(known) == len(said) == count and ascending and min(known, default=0) > 0 else None
