"""Executing one schedule for a campaign: run, judge, confirm a hang alone, retry the harness's own troubles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import structlog

from chaosckpt.campaign.judging import check
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.trial import ObserveStorage, run_trial
from chaosckpt.engine.subjects import Subject
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Verdict

RETRIES = 2
CONFIRMING_FACTOR = 3.0
LOG = structlog.get_logger("chaosckpt.campaign")


class SharedExclusiveLock:
    """Trials share it while they run side by side; one that has to be alone (a hang being confirmed) has it for itself."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._running = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Run while nobody wants to be alone."""
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._running += 1
        try:
            yield
        finally:
            with self._condition:
                self._running -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Run when all others have ended, and let none begin."""
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._alone = True
            self._condition.wait_for(lambda: self._running == 0)
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


class Executed(msgspec.Struct, frozen=True):
    """A schedule's journal and verdict. `troubled`: the harness failed in it, even after its retries."""

    journal: j.Journal
    verdict: Verdict
    troubled: bool = False


class Executor:
    """Runs schedules on one arena, which `rebuild` replaces when the harness had trouble with it."""

    def __init__(
        self,
        subject: Subject,
        arena: Arena,
        deadlines: Deadlines,
        lock: SharedExclusiveLock,
        write: Callable[[str, j.AnyEvent], None],
        rebuild: Callable[[], Arena] | None = None,
    ) -> None:
        self.subject = subject
        self.arena = arena
        self.write = write
        self._deadlines = deadlines
        self._lock = lock
        self._rebuild = rebuild

    def run(
        self,
        schedule: Schedule,
        trial: str,
        write: Callable[[str, j.AnyEvent], None] | None = None,
        observe_storage: ObserveStorage | None = None,
    ) -> Executed:
        """Run and judge one schedule. A hang is run again alone, with three times the patience, before it is believed.

        `observe_storage` sees every run from its attempt 0 on; the last run is the one that is returned.
        """
        with self._lock.shared():
            executed = self._run(schedule, trial, self._deadlines, write or self.write, observe_storage)
        if not executed.troubled and any(
            isinstance(event, j.AttemptEnded) and event.outcome == "hung" for event in executed.journal.events
        ):
            patient = msgspec.structs.replace(self._deadlines, factor=CONFIRMING_FACTOR)
            with self._lock.exclusive():
                executed = self._run(schedule, trial, patient, write or self.write, observe_storage)
        return executed

    @contextmanager
    def as_launched(self) -> Iterator[Executor | None]:
        """An executor of the same subject, launched as its user does, on an arena of its own; None where its ranks always are."""
        found = self.subject.as_launched()
        if found is None:
            yield None
            return
        subject, deadlines = found

        def rebuild() -> Arena:
            cold.arena.close()
            return subject.open_arena()

        cold = Executor(subject, subject.open_arena(), deadlines, self._lock, self.write, rebuild)
        try:
            yield cold
        finally:
            cold.arena.close()

    def _run(
        self,
        schedule: Schedule,
        trial: str,
        deadlines: Deadlines,
        write: Callable[[str, j.AnyEvent], None],
        observe_storage: ObserveStorage | None,
    ) -> Executed:
        seen: list[j.AnyEvent] = []
        for retry in range(RETRIES + 1):
            seen.clear()

            def record(event: j.AnyEvent) -> None:
                seen.append(event)
                write(trial, event)

            try:
                journal = run_trial(
                    self.subject,
                    schedule,
                    self.arena,
                    trial=trial,
                    deadlines=deadlines,
                    write=record,
                    observe_storage=observe_storage,
                )
                return Executed(journal, check(self.subject.scenario, journal))
            except HarnessError as error:
                LOG.warning("harness trouble", trial=trial, retry=retry, why=str(error))
                if self._rebuild is None:
                    raise
                self.arena = self._rebuild()
        journal = j.Journal(tuple(seen))
        return Executed(journal, check(self.subject.scenario, journal), troubled=True)
