"""Investigation: a violation is confirmed by replay, shrunk, grouped by its root cause, and stored as a finding.

Before the first fault, the job is run to its end and launched once more. What fails there needs no fault: it is one
finding, and no trial that shows it again is blamed on its faults.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import structlog

from chaosckpt import oracle
from chaosckpt.campaign import journals
from chaosckpt.campaign.execution import Executed, Executor
from chaosckpt.campaign.finding_store import FindingStore, StoredFinding
from chaosckpt.campaign.findings.evidence import addresses, described
from chaosckpt.campaign.findings.storage_copy import StorageWatch
from chaosckpt.campaign.grouping import Group, Groups, faces
from chaosckpt.campaign.journal_files import SUFFIX, JournalFile
from chaosckpt.campaign.judging import check
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.search import Search
from chaosckpt.campaign.shrink.shrinking import CAP, Shrinker
from chaosckpt.campaign.store import TrialRecord
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault
from chaosckpt.model.finding import Finding, RootCause
from chaosckpt.model.schedule import PLAIN_RESTART, Schedule, decode, to_builtins
from chaosckpt.model.summary import FindingSummary, Progress
from chaosckpt.model.verdict import Violation
from chaosckpt.report.finding_folder import reproduce_command

LOG = structlog.get_logger("chaosckpt.campaign")
CONFIRMATIONS = 2
"""Replays before shrinking; a violation of which none shows again is stored as flaky, unshrunk."""
COLD_TRIES = 3
"""Launches of a shrunk schedule through the user's own launcher, until its fault lands."""
REPLAYS = 10
"""Replays of the shrunk schedule, from which a finding has its rate."""


class Investigator:
    """Looks into violations, from any worker, while the others go on with the search."""

    def __init__(
        self,
        options: FuzzOptions,
        census: Census,
        kinds: Mapping[str, type[Fault]],
        progress: Callable[[Progress], None],
        modules: Sequence[str] = (),
    ) -> None:
        self._options = options
        self._census = census
        self._kinds = kinds
        self._store = FindingStore(options, census, kinds, modules)
        self._copies = options.run_directory / "replays" / "storage"
        self._groups = Groups()
        self._lock = threading.Lock()
        self._search: Search | None = None
        self._unaided: tuple[Violation, ...] = ()
        """What the plain restart has shown: it needs no fault."""
        self._unaided_cause: RootCause | None = None
        self._replays = JournalFile(options.run_directory / "replays" / f"replays{SUFFIX}")
        stored = list(self._store.read())
        self._found = {one.finding.id: one for one in stored if not one.finding.interrupted}
        self._interrupted = [one for one in stored if one.finding.interrupted]
        """Findings of an earlier part of the campaign that are looked into anew; each stays until something takes its place."""
        self._groups.restore([_group(one) for one in self._found.values()])

    def watch(self, search: Search) -> None:
        """Tell which search this belongs to: its end cuts an investigation short, its message line tells of findings."""
        self._search = search

    def close(self) -> None:
        """End the file of the replays."""
        self._replays.close()

    def count(self) -> int:
        """Findings so far."""
        return len(self._found) + len(self._interrupted)

    @property
    def _stopped(self) -> bool:
        return self._search is not None and self._search.stopped.is_set()

    def restart_plainly(self, executor: Executor) -> None:
        """Run the job to its end and launch it once more, with no fault; store what fails as a finding that blames none."""
        trial = f"{self._options.seed}:plain"
        executed = executor.run(PLAIN_RESTART, trial, self._write)
        first = executed.verdict.primary
        if first is None:
            if executed.verdict.outcome == "inconclusive":
                LOG.warning("the restart without a fault could not be judged", why=executed.verdict.reason)
            return
        self._unaided = (first, *executed.verdict.others)
        self._unaided_cause = cause = oracle.root_cause(executed.journal, executed.verdict)
        if self._groups.see(cause, trial) == "new":
            LOG.info("violation without a fault", trial=trial, cause=str(cause))
            self._settle(executor, trial, cause, PLAIN_RESTART, executed, PLAIN_RESTART, 0)

    def cause(self, executed: Executed) -> RootCause | None:
        """The root cause of a trial's violation: without a fault where the plain restart has shown the same. None without one."""
        found = executed.verdict.primary
        if found is None:
            return None
        if any(oracle.same_failure(shown, found) for shown in self._unaided):
            return self._unaided_cause
        return oracle.root_cause(executed.journal, executed.verdict)

    def unfinished(self, records: Iterable[TrialRecord]) -> list[tuple[TrialRecord, Schedule, Executed]]:
        """What an earlier part of the campaign saw and did not look into to the end: the first trial of each such cause, as its
        journal tells it, in the order of the trials. Shrinking begins again, so that it ends as if nothing had stopped it."""
        open_ = {one.trial: one for one in records if one.cause is not None and self._groups.match(one.cause) is None}
        found: dict[RootCause, tuple[TrialRecord, Schedule, Executed]] = {}
        for journal, _ in journals.read(self._options.run_directory) if open_ else ():
            record = open_.get(journal.trial)
            if record is None or record.cause is None:
                continue
            first = found.get(record.cause)
            if first is not None and first[0].index < record.index:
                continue
            executed = Executed(journal, check(self._options.scenario, journal))
            if self.cause(executed) == record.cause:
                found[record.cause] = record, _schedule(journal, self._kinds), executed
        return sorted(found.values(), key=lambda one: one[0].index)

    def investigate(self, executor: Executor, record: TrialRecord, schedule: Schedule, executed: Executed) -> None:
        """Look into one violation; a known or pending root cause is only counted."""
        assert record.cause is not None
        with self._lock:
            sight = self._groups.see(record.cause, record.trial)
        if sight != "new":
            return
        LOG.info("violation", trial=record.trial, cause=str(record.cause))
        shown = 0
        for number in range(CONFIRMATIONS):
            if not self._stopped:
                self._tell(record.trial, f"replay {number + 1} of {CONFIRMATIONS} to confirm it")
                shown += self._replay(executor, schedule, executed, record.trial, number) is not None
        shrinker = Shrinker(schedule, self._census, cap=CAP if shown else 0)
        while not self._stopped and (wanted := shrinker.wanted()):
            self._tell(record.trial, f"shrinking its schedule, trial {shrinker.trials + 1} of at most {shrinker.cap}")
            again = self._replay(executor, wanted[0], executed, record.trial, CONFIRMATIONS + shrinker.trials)
            shrinker.tell(wanted[0], again is not None)
        self._settle(executor, record.trial, record.cause, schedule, executed, shrinker.best, shrinker.trials)

    def _settle(
        self,
        executor: Executor,
        trial: str,
        raw: RootCause,
        schedule: Schedule,
        executed: Executed,
        best: Schedule,
        shrink_trials: int,
    ) -> None:
        """Measure how often the shrunk schedule `best` shows it, and store it if its cause is new."""
        watch = StorageWatch(self._copies / trial.replace(":", "-"))
        try:
            again, replays = None, 0
            if not self._stopped:
                self._tell(trial, f"replay 1 of {REPLAYS} of the shrunk schedule")
                again, replays = self._replay(executor, best, executed, trial, 1000, watch), 1
            last = executed if again is None else again
            canonical = self.cause(last)
            assert canonical is not None
            with self._lock:
                known = self._groups.match(canonical)
            shown = int(again is not None)
            while known is None and replays < REPLAYS and not self._stopped:
                self._tell(trial, f"replay {replays + 1} of {REPLAYS} of the shrunk schedule")
                shown += self._replay(executor, best, executed, trial, 1000 + replays) is not None
                replays += 1
            violation = last.verdict.primary
            assert violation is not None
            confirmed = self._confirm_cold(executor, best, executed, trial) if known is None and shown else None
            with self._lock:
                group, fresh = self._groups.settle(raw, canonical)
                self._replace_interrupted(raw)
                if not fresh:
                    self._found[group.id] = self._store.recount(self._found[group.id].finding, tuple(group.raw))
                    return
                finding = Finding(
                    id=group.id,
                    cause=group.cause,
                    violation=violation,
                    trial=trial,
                    count=group.count,
                    schedule=to_builtins(schedule),
                    shrunk=to_builtins(best),
                    faults=tuple(described(fault, self._census) for fault in best.faults),
                    addresses=tuple(addresses(fault) for fault in best.faults),
                    reproduced=shown,
                    replays=replays,
                    shrink_trials=shrink_trials,
                    confirmed_cold=confirmed,
                    interrupted=replays < REPLAYS,
                )
                told, seen = (schedule, None) if again is None else (best, watch)
                self._found[group.id] = self._store.write(finding, executed.journal, last.journal, group, told, seen)
        finally:
            watch.forget()
        if self._search is not None:
            self._search.message = f"found {group.id}: {violation.sentence}"

    def _confirm_cold(self, executor: Executor, best: Schedule, executed: Executed, trial: str) -> bool | None:
        """Whether the shrunk schedule shows it when the user's own launcher starts the ranks; None where nothing came of that, or
        chaosckpt starts them in no other way."""
        with executor.as_launched() as cold:
            for number in range(COLD_TRIES if cold is not None else 0):
                assert cold is not None
                if self._stopped:
                    break
                self._tell(trial, f"confirming it through {cold.subject.launcher}, cold")
                again = cold.run(best, f"{trial}/cold-{number}", self._write)
                if again.verdict.outcome != "inconclusive":
                    return _same(executed, again)
        return None

    def _replace_interrupted(self, raw: RootCause) -> None:
        """Remove what an earlier part of the campaign stored of this cause: what is known now takes its place."""
        for one in [one for one in self._interrupted if raw in one.raw]:
            self._store.remove(one.finding.id)
            self._interrupted.remove(one)

    def _tell(self, trial: str, what: str) -> None:
        """Say how far it is with this violation."""
        if self._search is not None:
            self._search.activities[trial] = f"violation of trial {trial}: {what}"

    def _replay(
        self,
        executor: Executor,
        schedule: Schedule,
        executed: Executed,
        trial: str,
        number: int,
        watch: StorageWatch | None = None,
    ) -> Executed | None:
        """Run a schedule again; what came of it if it shows the same violation, else None. `watch` copies what lies on storage."""
        observe = watch.observe if watch is not None else None
        again = executor.run(schedule, f"{trial}/{number}", self._write, observe)
        return again if _same(executed, again) else None

    def _write(self, trial: str, event: j.AnyEvent) -> None:
        with self._lock:
            self._replays.write(trial, event)

    def summaries(self, records: Iterable[TrialRecord]) -> list[FindingSummary]:
        """Every finding with its final count, the gravest first; stored once more with that count. Findings of one shrunk
        schedule whose faults struck at one place are one, told by the gravest."""
        by_id: dict[str, list[TrialRecord]] = {}
        for record in sorted(records, key=lambda record: record.index):
            if (id_ := self._finding_of(record)) is not None:
                by_id.setdefault(id_, []).append(record)
        findings = []
        for stored in (*self._found.values(), *self._interrupted):
            finding = msgspec.structs.replace(stored.finding, count=max(1, len(by_id.get(stored.finding.id, []))))
            self._store.recount(finding, stored.raw)
            findings.append(finding)
        rows = []
        for lead, *others in faces(sorted(findings, key=_gravest_first)):
            records = [record for one in (lead, *others) for record in by_id.get(one.id, [])]
            trials = [record.trial for record in sorted(records, key=lambda record: record.index)]
            rows.append(self._summary(lead, others, trials))
        return rows

    def _finding_of(self, record: TrialRecord) -> str | None:
        """The id of the finding that a trial counts for."""
        if record.cause is None:
            return None
        group = self._groups.match(record.cause)
        earlier = (one.finding.id for one in self._interrupted if record.cause in one.raw)
        return group.id if group is not None else next(earlier, None)

    def _summary(self, finding: Finding, others: list[Finding], trials: list[str]) -> FindingSummary:
        folder = self._store.folder(finding.id)
        return FindingSummary(
            id=finding.id,
            invariant=finding.cause.invariant,
            root_cause=str(finding.cause),
            count=max(1, len(trials)),
            faults=finding.faults,
            reproduced=f"{finding.reproduced}/{finding.replays}",
            path=str(folder),
            confirmed_cold=finding.confirmed_cold,
            sentence=finding.violation.sentence,
            command=reproduce_command(self._store.short(folder)),
            trials=tuple(trials[:10]) or (finding.trial,),
            interrupted=finding.interrupted,
            also=tuple(f"{other.id}: {other.violation.sentence}" for other in others),
        )


def _same(executed: Executed, again: Executed) -> bool:
    """Whether two runs violate the same invariant."""
    wanted, seen = executed.verdict.primary, again.verdict.primary
    return seen is not None and wanted is not None and seen.invariant == wanted.invariant


def _gravest_first(finding: Finding) -> tuple[object, ...]:
    return *oracle.gravity(finding.cause.invariant, finding.cause.error_type), -finding.count, finding.id


def _schedule(journal: j.Journal, kinds: Mapping[str, type[Fault]]) -> Schedule:
    started = journal.events[0]
    assert isinstance(started, j.TrialStarted)  # by which the journal was found
    return decode(started.schedule, kinds.values())


def _group(stored: StoredFinding) -> Group:
    finding = stored.finding
    return Group(finding.id, finding.cause, list(stored.raw), [finding.trial])
