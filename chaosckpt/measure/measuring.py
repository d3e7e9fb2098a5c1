"""The whole of one measurement, in order: a sweep, saves, their space, restarts, neighbours, and what to make of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import ExitStack
from importlib import metadata

from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.engine.wire.versions import of
from chaosckpt.measure import figures, neighbours, notes, restarts
from chaosckpt.measure import preconditions as checks
from chaosckpt.measure import storage_use as space
from chaosckpt.measure.failure_rate import assumed
from chaosckpt.measure.file_system import file_systems
from chaosckpt.measure.interval import advise, measured_inputs
from chaosckpt.measure.job import MeasuredJob, open_job
from chaosckpt.measure.measurement import (
    Capacity,
    Contention,
    IntervalAdvice,
    Measurement,
    RankFigures,
    Restart,
    ScalePoint,
)
from chaosckpt.measure.sweep import MeasureOptions, SweepPoint, points
from chaosckpt.model.phrasing import plural
from chaosckpt.model.topology import Topology
from chaosckpt.training.metered import Metered, MeteredRecovery

_ALWAYS = ("python", "implementation", "kernel", "machine", "libc", "chaosckpt", "torch", "numpy")


def versions(target: object) -> dict[str, str]:
    """Versions of the runtime and of the libraries, by name, in a fixed order.

    `target` is the checkpointer's class (or an object of it): the package that its module belongs to is named too, where that has a
    version of its own.
    """
    return of(*dict.fromkeys((*_ALWAYS, *_packages_of(target))))


def _packages_of(target: object) -> list[str]:
    """The distributions that brought the modules of the target's class and of its bases."""
    kind = target if isinstance(target, type) else type(target)
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__} - {"builtins", "abc", "typing", "__main__"}
    owners = metadata.packages_distributions()
    return sorted({owner for root in roots for owner in owners.get(root, ())})


def versions_with(modules: Iterable[str]) -> dict[str, str]:
    """Those of runtime and libraries, then those of the distributions that these top-level modules came with."""
    found = versions(object())
    owners = metadata.packages_distributions()
    for name in sorted({owner for module in modules for owner in owners.get(module, ())}):
        found.setdefault(name, metadata.version(name))
    return found


Progress = Callable[[str], None]
STEPS = 2
"""Training steps before each save."""
SPACE_SAVES = 2
"""Saves whose space is watched, none of them timed."""
SWEEP_RESTARTS = 2
"""Restarts at each further point of a sweep, at most."""


def measure(options: MeasureOptions, progress: Progress = lambda text: None) -> Measurement:
    """Measure what checkpointing costs. Raises UsageError, before anything is begun, for what can't be measured here."""
    sweep = points(options)
    checks.check(options, sweep)
    with ExitStack() as stack:
        progress("starting the nodes")
        job = stack.enter_context(open_job(options.scenario))
        *further, largest = sweep
        scale = tuple(_sweep_point(job, point, options, progress) for point in further)
        full = _Full(job, largest, options, progress)
        full.take()
        if options.neighbours:
            progress("starting the neighbours")
            others = stack.enter_context(neighbours.open_neighbours(job, options.neighbours))
            full.take_beside(others)
        return full.result(scale)


def _saves(job: MeasuredJob, point: SweepPoint, options: MeasureOptions, progress: Progress) -> tuple[Metered, ...]:
    """The saves of a job that begins anew."""
    warm_up = f" after {plural(options.warm_up, 'warm-up save')}" if options.warm_up else ""
    progress(f"{plural(options.repeats, 'save')}{warm_up}, {point.in_words}")
    job.begin(point.workload)
    order = MeasuringProgram(
        kind="saves",
        warm_up=options.warm_up,
        repeats=options.repeats,
        steps=STEPS,
        probe_directories=job.probe_directories(point.topology),
    )
    return job.run(point.topology, order, f"saving with {point.in_words}")


def _sweep_point(job: MeasuredJob, point: SweepPoint, options: MeasureOptions, progress: Progress) -> ScalePoint:
    """A further point of a sweep: its saves, and restarts with a warm page cache."""
    ranks = _saves(job, point, options, progress)
    lose_local(job, point.topology)
    times = min(options.repeats, SWEEP_RESTARTS)
    warm = restarts.restarted(job, point.topology, times, progress, cold=False)
    return figures.scale_point(ranks, figures.restart("warm", warm, ""))


class _Full:
    """The largest point, measured in full."""

    def __init__(self, job: MeasuredJob, point: SweepPoint, options: MeasureOptions, progress: Progress) -> None:
        self.job = job
        self.point = point
        self.options = options
        self.progress = progress
        self.contention: tuple[Contention, ...] = ()

    def take(self) -> None:
        """Measure it alone."""
        job, topology = self.job, self.point.topology
        self.file_systems = file_systems(job.directories(topology))
        self.free_bytes = shutil.disk_usage(job.arena.directory).free
        self.ranks = _saves(job, self.point, self.options, self.progress)
        self.peaks = self._watch_space()
        self.boundary = words(job.guarantees)
        lose_local(job, topology)
        self.lives = restarts.measured(job, topology, self.options.repeats, self.progress)

    def _watch_space(self) -> space.Peaks:
        self.progress(f"watching the space of {SPACE_SAVES} more saves")
        directories = self.job.directories(self.point.topology)
        order = MeasuringProgram(kind="plain", repeats=SPACE_SAVES)
        with space.Watch(
            lambda: space.storage_bytes(directories), lambda: space.shared_memory_bytes(os.getpid())
        ) as watch:
            self.job.run(self.point.topology, order, "the saves whose space is watched")
        return watch.peaks(SPACE_SAVES)

    def take_beside(self, others: Sequence[MeasuredJob]) -> None:
        """Measure its saves again, beside neighbours."""
        order = MeasuringProgram(kind="plain", warm_up=self.options.warm_up, repeats=self.options.repeats, steps=STEPS)
        self.contention = neighbours.contention(self.job, others, self.point, order, self.progress)

    def result(self, scale: Sequence[ScalePoint]) -> Measurement:
        """Everything, with the advice. `scale` are the further points."""
        scenario, workload = self.options.scenario, self.point.workload
        by_rank = tuple(figures.rank_figures(metered, self._recoveries(metered.rank)) for metered in self.ranks)
        found = tuple(restarts.figure(lives) for lives in self.lives)
        capacity = figures.capacity(self.ranks, self.peaks, self.free_bytes)
        return Measurement(
            scenario=scenario.name,
            target=scenario.target.use,
            strategy=workload.strategy,
            ranks=self.point.topology.world_size,
            seed=workload.seed,
            repeats=self.options.repeats,
            warm_up=self.options.warm_up,
            asynchronous=self._asynchronous,
            figures=by_rank,
            restarts=found,
            spans=figures.spans(self.ranks),
            backlog=figures.backlog(self.ranks),
            capacity=capacity,
            contention=self.contention,
            scale=(*scale, figures.scale_point(self.ranks, found[0])) if scale else (),
            latencies=figures.latencies(self.ranks),
            advice=self._advice(by_rank, found, capacity),
            failure_boundary=self.boundary,
            file_systems=self.file_systems,
            versions=versions_with(self.ranks[0].imports),
            filters={str(metered.rank): metered.seccomp.mode for metered in self.ranks},
            notes=self._notes(),
        )

    @property
    def _asynchronous(self) -> bool:
        return any(save.asynchronous for metered in self.ranks for save in metered.saves)

    def _recoveries(self, rank: int) -> list[MeteredRecovery]:
        """Of one rank, with the cold cache where there was one."""
        found = (metered for life in self.lives[-1].lives for metered in life if metered.rank == rank)
        return [metered.recovery for metered in found if metered.recovery is not None]

    def _advice(self, by_rank: Sequence[RankFigures], found: Sequence[Restart], capacity: Capacity) -> IntervalAdvice:
        inputs = measured_inputs(
            by_rank,
            found,
            capacity,
            self.options.failure_rate or assumed(),
            self.contention,
            tolerated_loss_seconds=self.options.tolerated_loss_seconds,
            asynchronous=self._asynchronous,
            left_bytes=max(0, figures.storage_growth(self.ranks) or 0),
        )
        return advise(inputs)

    def _notes(self) -> tuple[str, ...]:
        """What a reader should know of how these figures came about."""
        ranks = self.ranks
        own = {note for metered in ranks for note in metered.notes}
        return (*notes.of(ranks, self.peaks, self.contention), *sorted(own))


SURVIVES_LOCAL = {"node-loss", "local-storage-loss"}
NOT_TESTED = "No crash, power loss or storage error was tested; test them with `chaosckpt fuzz` and `chaosckpt drill`."


def lose_local(job: MeasuredJob, topology: Topology) -> None:
    """Node-local storage is gone in a fresh allocation; it is kept for a target that doesn't claim to do without it."""
    if job.guarantees & SURVIVES_LOCAL:
        job.drop_local(topology)


def words(guarantees: Set[str]) -> str:
    """What was tested, and what was not."""
    if guarantees & SURVIVES_LOCAL:
        local = "node-local storage emptied"
    else:
        local = (
            "node-local storage kept, because the target promises to survive neither node-loss nor local-storage-loss"
        )
    return (
        "The job waited for every save and ended in order. The restart had new processes started by exec, a new temporary directory, "
        f"shared storage kept and {local}. {NOT_TESTED}"
    )
