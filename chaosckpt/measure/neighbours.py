"""Contention: jobs that write the same way on the same storage, until the measured job has saved beside them."""

from __future__ import annotations

import queue
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from chaosckpt.engine.golden.census import failure
from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.errors import ChaosckptError, HarnessError, UsageError
from chaosckpt.measure.figures import NO_TIME
from chaosckpt.measure.job import MeasuredJob, open_job
from chaosckpt.measure.measurement import Contention, Spread, slowest
from chaosckpt.measure.sweep import SweepPoint
from chaosckpt.model.phrasing import plural
from chaosckpt.training.metered import Metered, MeteredSave


class Neighbour:
    """A job that saves without an end in a thread of this process, from `begin` to `end`."""

    def __init__(self, job: MeasuredJob, point: SweepPoint) -> None:
        self.saves: dict[int, list[MeteredSave]] = {rank: [] for rank in range(point.topology.world_size)}
        self._job = job
        self._run = job.attempt(point.topology, MeasuringProgram(kind="neighbour"), self._told)
        self._ended = ""
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._save, name="chaosckpt-neighbour", daemon=True)

    def begin(self) -> None:
        """Return when every rank has saved once. Raises UsageError, with what the job said, where it ends before."""
        self._thread.start()
        while not all(self.saves.values()):
            if ended := self._news.get():
                raise UsageError(ended)

    def end(self) -> None:
        """Kill the job, if it was begun. Raises UsageError where it had ended by itself."""
        if self._thread.ident is None:
            return
        ended_by_itself = bool(self._ended)
        with suppress(HarnessError):  # its node is gone, and all its ranks with it
            for node in self._job.arena.distinct():
                node.kill(None, "harness")
        self._thread.join()
        if ended_by_itself:
            raise UsageError(self._ended)

    def join(self) -> None:
        """Wait until the job has ended by itself."""
        self._thread.join()

    def _told(self, metered: Metered) -> None:
        self.saves[metered.rank] += metered.saves
        self._news.put("")

    def _save(self) -> None:
        try:
            outcome = self._run.run()
            self._ended = failure("a neighbour's job", outcome, self._run.events)
        except ChaosckptError as error:
            self._ended = f"a neighbour's job: {error}"
        finally:
            self._news.put(
                self._ended or "a neighbour's job failed because chaosckpt itself failed; see the output above"
            )


@contextmanager
def open_neighbours(job: MeasuredJob, count: int) -> Iterator[list[MeasuredJob]]:
    """So many jobs like this one, on storage of their own beside its."""
    modules = job.arena.nodes[0].modules
    with ExitStack() as stack:
        yield [stack.enter_context(open_job(job.scenario, modules=modules, restarts=False)) for _ in range(count)]


def contention(
    job: MeasuredJob,
    others: Sequence[MeasuredJob],
    point: SweepPoint,
    order: MeasuringProgram,
    progress: Callable[[str], None],
) -> tuple[Contention, ...]:
    """The job's saves beside one neighbour, beside two, and so on, compared with what it and they take alone just before.

    A machine that others use, too, changes from minute to minute: what is compared should lie close together.
    """
    own = []
    for number, each in enumerate((job, *others)):
        progress(f"saves of neighbour {number} alone" if number else "saves again, for comparison")
        each.begin(point.workload)
        told = each.run(point.topology, order, "the saves of a job alone")
        own.append(completions([metered.saves for metered in told]))
    alone, *their_own = own
    found = []
    for count in range(1, len(others) + 1):
        progress(f"saves beside {plural(count, 'neighbour')}")
        medians = [spread.median for spread in their_own[:count]]
        found.append(_beside(job, others[:count], point, order, alone, medians))
    return tuple(found)


def _beside(
    job: MeasuredJob,
    others: Sequence[MeasuredJob],
    point: SweepPoint,
    order: MeasuringProgram,
    alone: Spread,
    their_own: Sequence[float],
) -> Contention:
    for each in (job, *others):
        each.begin(point.workload)
    saving = [Neighbour(other, point) for other in others]
    with ExitStack() as stack:
        for neighbour in saving:
            stack.callback(neighbour.end)
            neighbour.begin()
        told = job.run(point.topology, order, "the saves beside neighbours")
    return compared(told, [list(neighbour.saves.values()) for neighbour in saving], alone, their_own)


def compared(
    told: Sequence[Metered],
    neighbours: Sequence[Sequence[Sequence[MeteredSave]]],
    alone: Spread,
    their_own: Sequence[float],
) -> Contention:
    """The ratios. `neighbours` has, for each neighbour, the saves of each of its ranks; only those beside the job's own count."""
    completion = completions([metered.saves for metered in told])
    began = min(save.began_seconds for metered in told for save in metered.saves)
    ended = max(save.began_seconds + save.completion_seconds for metered in told for save in metered.saves)
    ratios = []
    for ranks, own in zip(neighbours, their_own, strict=True):
        beside = [
            [s for s in saves if s.began_seconds < ended and s.began_seconds + s.completion_seconds > began]
            for saves in ranks
        ]
        if all(beside):
            ratios.append(completions(beside).median / (own or NO_TIME))
    return Contention(
        neighbours=len(neighbours),
        completion_seconds=completion,
        alone_seconds=alone,
        ratio=completion.median / (alone.median or NO_TIME),
        neighbour_ratio=statistics.median(ratios) if ratios else None,
    )


def completions(ranks: Sequence[Sequence[MeteredSave]]) -> Spread:
    """How long each save took until the slowest rank's was finished."""
    return slowest(Spread(tuple(save.completion_seconds for save in saves)) for saves in ranks)
