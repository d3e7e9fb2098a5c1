"""The program that measures: it saves, or restarts, by the real clock and reports what that has cost it."""

from __future__ import annotations

import statistics
import sys
import time
from types import ModuleType
from typing import Any

from chaosckpt.engine.rank.instruments import RankInstruments, latency, seccomp
from chaosckpt.engine.rank.job import JobProgram
from chaosckpt.engine.rank.training import chosen_step, is_done
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.engine.wire.reports import Measured
from chaosckpt.targets.api import Done, Intent, Target
from chaosckpt.training.loop import Job, train_step
from chaosckpt.training.meter import Meter, logical_bytes
from chaosckpt.training.metered import Metered, MeteredBacklog, MeteredLatency, MeteredRecovery, MeteredSave, Overlap

PEAKS_NOT_RESET = (
    "the kernel keeps one peak of resident memory for a process from its start, so the peak is not of saves alone"
)


class Measuring(JobProgram):
    """Digests nothing and reports nothing while the clock counts. Stage marks are kept with their time."""

    def __init__(self, order: RankOrder, channel: Channel, program: MeasuringProgram) -> None:
        super().__init__(order, channel)
        self.program = program
        self.marks: list[tuple[str, float]] = []

    def run(self) -> None:
        """What is ordered: saves, saves without an end, or one restart."""
        order = self.program
        self.join()
        job = self.build()
        target = self.make_target()
        if order.kind == "restart":
            self.restart(job, target)
            return
        self.where = "recover"
        target.recover(job.state, Intent(self.order.attempt.intent))
        instruments = RankInstruments(self.tiers())
        meter = Meter(
            job,
            target,
            clock=time.monotonic,
            instruments=instruments,
            finished=finished,
            agree=lambda value: max(target.gather(value)),
            marks=self.marks,
        )
        self.where = "save"
        if order.kind == "neighbour":
            self.save_on(meter, order)
        self.save_all(meter, target, instruments, order)

    def mark(self, stage: str) -> None:
        """A stage begins."""
        self.marks.append((stage, time.monotonic()))

    def tiers(self) -> dict[str, str]:
        """The tiers at whose size this rank looks: of those that see the same tier it is the first."""
        place = self.order.place
        seen = {"shared": place.rank == 0, "local": place.local_rank == 0}
        return {tier: directory for tier, directory in place.tiers.items() if seen[tier]}

    def save_all(self, meter: Meter, target: Target, instruments: RankInstruments, order: MeasuringProgram) -> None:
        """Saves with no training beside them, then, where they are asynchronous, with training, then in a pile."""
        # A first step is no step like the others: it makes the optimizer's state.
        meter.train(1)
        meter.step_seconds.clear()
        warm_up = tuple(meter.saves(order.warm_up, order.steps))
        saves = tuple(meter.saves(order.repeats, order.steps))
        overlaps: tuple[Overlap, ...] = ()
        backlog: MeteredBacklog | None = None
        if order.kind == "saves" and any(target.gather(any(save.asynchronous for save in saves))):
            overlaps, backlog = self.save_beside_training(meter, saves, order)
        latencies = self.latencies(order)
        self.where = "close"
        target.close()
        retained = target.retained()
        shared, own = logical_bytes(meter.job.state)
        self.report(
            Measured(
                Metered(
                    rank=self.rank,
                    logical_bytes=shared,
                    own_logical_bytes=own,
                    warm_up=warm_up,
                    saves=saves,
                    step_seconds=tuple(meter.step_seconds),
                    overlaps=overlaps,
                    backlog=backlog,
                    latencies=latencies,
                    final=instruments.storage(),
                    retained=None if retained is None else len(retained),
                    seccomp=seccomp(),
                    imports=imports_of(type(target)),
                    notes=() if instruments.peaks_reset else (PEAKS_NOT_RESET,),
                )
            )
        )

    def save_beside_training(
        self, meter: Meter, saves: tuple[MeteredSave, ...], order: MeasuringProgram
    ) -> tuple[tuple[Overlap, ...], MeteredBacklog]:
        """Each save with training beside it; then saves that begin before the earlier ones are finished."""
        alone = statistics.median(save.completion_seconds for save in saves)
        overlaps = tuple(meter.overlap(alone) for _ in range(order.repeats))
        bound = self.workload.outstanding
        steps = [seconds for overlap in overlaps for seconds in overlap.step_seconds]
        beside = statistics.median(overlap.completion_seconds for overlap in overlaps)
        backlog = meter.backlog(
            beside, bound, saves=2 * bound + 4, step_seconds=statistics.median(steps) if steps else 0.0
        )
        return overlaps, backlog

    def save_on(self, meter: Meter, order: MeasuringProgram) -> None:
        """Save until the node ends it; each save is told at once."""
        meter.train(1)
        while True:
            for save in meter.saves(1, order.steps):
                self.report(Measured(Metered(rank=self.rank, saves=(save,), seccomp=seccomp())))

    def latencies(self, order: MeasuringProgram) -> tuple[MeteredLatency, ...]:
        """Single operations on each tier that the target uses."""
        return tuple(
            latency(tier, directory, f"rank-{self.rank}", time.monotonic, max(5, order.repeats))
            for tier, directory in sorted(order.probe_directories.items())
        )

    def restart(self, job: Job, target: Target) -> None:
        """Recover and train one step."""
        instruments = RankInstruments({})
        self.where = "recover"
        launched = self.order.launched_seconds
        before = instruments.counters()
        began = time.monotonic()
        answer = target.recover(job.state, Intent(self.order.attempt.intent))
        recovered = time.monotonic()
        io = instruments.counters() - before
        stepping = time.monotonic()
        train_step(job)
        stepped = time.monotonic()
        loading = next((at for stage, at in self.marks if stage == "load" and at >= began), None)
        recovery = MeteredRecovery(
            process_start_seconds=began - launched,
            discover_seconds=0.0 if loading is None else loading - began,
            load_seconds=recovered - (began if loading is None else loading),
            first_step_seconds=stepped - stepping,
            marked=loading is not None,
            chosen=chosen_step(answer),
            io=io,
        )
        self.where = "close"
        target.close()
        self.report(Measured(Metered(rank=self.rank, recovery=recovery, seccomp=seccomp())))


def imports_of(target: type[Target]) -> tuple[str, ...]:
    """The top-level modules that the modules of a target, and of the targets that it builds on, take something from."""
    own = {base.__module__ for base in target.__mro__} & set(sys.modules)
    found = {module.partition(".")[0] for module in own}
    for module in own:
        for value in vars(sys.modules[module]).values():
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(name, str):
                found.add(name.partition(".")[0])
    return tuple(sorted(found - sys.stdlib_module_names))


def finished(pending: Any) -> bool:
    """Whether a save is finished, as far as it tells without being awaited."""
    return isinstance(pending, Done) or is_done(pending)
