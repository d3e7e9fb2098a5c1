"""The search: workers run one trial after another until the budget is spent, and look into what violates an invariant."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import structlog

from chaosckpt.campaign.execution import Executed, Executor
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.store import TrialLog, TrialRecord
from chaosckpt.campaign.tally import Tally
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault
from chaosckpt.model.finding import RootCause
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.summary import Progress
from chaosckpt.strategies.coverage import CensusPoint, covered
from chaosckpt.strategies.drawing import draw, is_single

LOG = structlog.get_logger("chaosckpt.campaign")
KEPT = "kept"
Investigate = Callable[[Executor, TrialRecord, Schedule, Executed], None]


class Search:
    """One part of a campaign. Trials are taken in the order of their indices; any number of workers finds the same."""

    def __init__(
        self,
        options: FuzzOptions,
        census: Census,
        kinds: Mapping[str, type[Fault]],
        log: TrialLog,
        investigate: Investigate,
        cause: Callable[[Executed], RootCause | None],
        progress: Callable[[Progress], None],
        begun: float | None = None,
    ) -> None:
        """`begun` is when the campaign's budget of time began, by the monotonic clock; None: with the first trial."""
        self.options = options
        self.census = census
        self.tally = Tally(census)
        self.stopped = threading.Event()
        self.fresh = 0
        self.seconds = 0.0
        self.message = ""
        self.activities: dict[str, str] = {}
        """What is done with violations at the moment, by the trial's name."""
        self.unfinished: list[tuple[TrialRecord, Schedule, Executed]] = []
        """Violations of an earlier part of the campaign; they are looked into before any new trial."""
        self._begun = begun
        self.findings: Callable[[], int] = lambda: 0
        self._kinds = kinds
        self._log = log
        self._investigate = investigate
        self._cause = cause
        self._progress = progress
        self._lock = threading.Lock()
        self._failures: list[HarnessError] = []
        self._fault: Exception | None = None
        for record in log.read():
            self.tally.add(record)
        self._indices = self._remaining()

    def _remaining(self) -> Iterator[int]:
        index = 0
        while self.options.trials is None or index < self.options.trials:
            if index not in self.tally.records:
                yield index
            index += 1

    def run(self, executors: Sequence[Executor]) -> None:
        """Search until the budget is spent or `stopped` is set. Raises HarnessError when no worker can go on, and a fault
        of our own in a worker whatever else went on."""
        self._started = time.monotonic()
        self._budget_from = self._started if self._begun is None else self._begun
        workers = [
            threading.Thread(target=self._work, args=(executor,), name=f"worker-{number}", daemon=True)
            for number, executor in enumerate(executors)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(timeout=0.5)  # a join without a limit would keep signals from being handled
                self.report_progress()
        self.seconds = time.monotonic() - self._started
        if self._fault is not None:
            raise self._fault
        if self._failures and not self.stopped.is_set():
            raise self._failures[0]

    def _work(self, executor: Executor) -> None:
        try:
            while (violation := self._next_unfinished()) is not None:
                self._look_into(executor, *violation)
            while (taken := self._next()) is not None:
                self._trial(executor, *taken)
        except HarnessError as error:
            LOG.error("a worker gives up", why=str(error))
            self._failures.append(error)
        except Exception as error:  # A fault of our own in a thread must reach the main thread, and not end in silence.
            # Noted before it is told: a log that can't be written must not keep it from being raised.
            self._fault = error
            self.stopped.set()
            LOG.exception("a worker failed")

    def _next_unfinished(self) -> tuple[TrialRecord, Schedule, Executed] | None:
        with self._lock:
            return self.unfinished.pop(0) if self.unfinished and not self.stopped.is_set() else None

    def _next(self) -> tuple[int, Schedule] | None:
        with self._lock:
            if self.stopped.is_set() or self._out_of_time():
                return None
            index = next(self._indices, None)
            if index is None:
                return None
            return index, draw(self.options.seed, index, self.options.scenario, self.census, self._kinds)

    def _out_of_time(self) -> bool:
        return self._seconds_left() == 0.0

    def _seconds_left(self) -> float | None:
        """Of the budget, golden runs included; None where there is none."""
        if self.options.seconds is None:
            return None
        return max(0.0, self.options.seconds - (time.monotonic() - self._budget_from))

    def _trial(self, executor: Executor, index: int, schedule: Schedule) -> None:
        executed = executor.run(schedule, f"{self.options.seed}:{index}")
        record = self._record(index, schedule, executed)
        self._log.append(record)
        with self._lock:
            self.tally.add(record)
            self.fresh += 1
        self.report_progress()
        if record.outcome == "violation":
            if self.options.keep:
                keep(executor.arena, self.options.run_directory / KEPT / record.trial.replace(":", "-"))
            self._look_into(executor, record, schedule, executed)

    def _look_into(self, executor: Executor, record: TrialRecord, schedule: Schedule, executed: Executed) -> None:
        try:
            self._investigate(executor, record, schedule, executed)
        finally:
            self.activities.pop(record.trial, None)
        self.report_progress()

    def _record(self, index: int, schedule: Schedule, executed: Executed) -> TrialRecord:
        verdict = executed.verdict
        hit = tuple(struck_points(executed.journal, self.tally.points))
        with self._lock:
            single = is_single(self.options.seed, index, self.options.scenario, self.census, self._kinds)
        return TrialRecord(
            index=index,
            trial=executed.journal.trial,
            outcome=verdict.outcome,
            reason=verdict.reason,
            violation=verdict.primary,
            cause=self._cause(executed),
            single=single,
            attempts=sum(isinstance(event, j.AttemptStarted) for event in executed.journal.events),
            faults=len(schedule.faults),
            topologies=len(set(schedule.topologies(self.options.scenario.topology.topologies[0]))),
            recovery_fault=any(
                isinstance(event, j.FaultInjected) and event.label.endswith("of the recovery")
                for event in executed.journal.events
            ),
            struck=hit,
            harness_trouble=executed.troubled,
            gaps=verdict.gaps,
            refused=tuple(sorted(set(refusals(executed.journal)))),
        )

    def report_progress(self) -> None:
        """Tell where the campaign stands."""
        elapsed = time.monotonic() - self._started
        with self._lock:
            progress = Progress(
                phase="search",
                trials=len(self.tally.records),
                trials_budget=self.options.trials,
                rate_per_minute=60 * self.fresh / elapsed if elapsed > 0 else 0.0,
                hit=len(self.tally.struck),
                total=len(self.tally.points),
                findings=self.findings(),
                violations=self.tally.count("violation"),
                inconclusive=self.tally.count("inconclusive"),
                seconds_left=self._seconds_left(),
                message=self.message,
                activity="; ".join(self.activities.copy().values()),
            )
            self.message = ""
        self._progress(progress)


def keep(arena: Arena, directory: Path) -> None:
    """Copy what the tiers hold at a trial's end, as far as this machine sees them."""
    for number in range(len(arena.nodes)):
        for tier, path in arena.tiers(number).items():
            copy = directory / (tier if tier == "shared" else f"{tier}-{number}")
            if Path(path).is_dir() and not copy.exists():
                shutil.copytree(path, copy, symlinks=True)


def struck_points(journal: j.Journal, known: frozenset[CensusPoint]) -> Iterator[CensusPoint]:
    """The census points at which faults of this trial landed, by the evidence in its journal."""
    for event in journal.events:
        if isinstance(event, j.FaultInjected | j.ErrorInjected) and event.operation is not None:
            found = covered(event.attempt, event.operation.address, known)
            if found is not None:
                yield found


def refusals(journal: j.Journal) -> Iterator[str]:
    """What a user is to know of. That a ring was refused (ENOSYS) does no harm: programs do without one."""
    for event in journal.events:
        if isinstance(event, j.Untraced) and event.refused and not event.what.endswith("with ENOSYS"):
            yield event.what
