"""What a command's journal tells, launch by launch."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from chaosckpt.model import journal as j
from chaosckpt.model.command import CommandSettings
from chaosckpt.model.journal import AnyEvent, Journal
from chaosckpt.model.scenario import Scenario
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.view import At


class CommandView:
    """One trial of a command. Raises ValueError for a journal that doesn't begin with TrialStarted."""

    def __init__(self, scenario: Scenario, journal: Journal) -> None:
        if not journal.events or not isinstance(journal.events[0], j.TrialStarted):
            raise ValueError("this journal doesn't begin with the start of a trial")
        self.command = scenario.command or CommandSettings(argv=())
        self.journal = journal
        self.start = journal.events[0]

    def judges(self, *signs: str) -> bool:
        """Whether all these signs are known and steady, by the golden runs; see TrialStarted.judged."""
        return set(signs) <= set(self.start.judged)

    @functools.cached_property
    def events(self) -> tuple[At[AnyEvent], ...]:
        return tuple(At(index, event) for index, event in enumerate(self.journal.events))

    @functools.cached_property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(self._launches())

    def _launches(self) -> Iterator[Launch]:
        before: At[j.CheckpointsSeen] | None = None
        for at in self.events:
            if isinstance(at.event, j.AttemptStarted):
                number = at.event.attempt
                own = tuple(
                    other
                    for other in self.events
                    if other.event.attempt == number and not isinstance(other.event, (j.TrialStarted, j.TrialEnded))
                )
                launch = Launch(number, At(at.index, at.event), own, before)
                yield launch
                before = launch.after or before

    @property
    def closing(self) -> Launch | None:
        return next((launch for launch in self.launches if launch.closing), None)

    def earlier(self, launch: Launch) -> tuple[Launch, ...]:
        """The launches before this one, in order."""
        return tuple(other for other in self.launches if other.start.index < launch.start.index)

    @functools.cached_property
    def recoveries(self) -> tuple[Launch, ...]:
        """The launches that had something to recover from or not, and in whose recovery no fault struck."""
        return tuple(
            launch
            for launch in self.launches
            if launch.before is not None and not launch.struck_in_recovery and not self.damaged_before(launch)
        )

    def damaged_before(self, launch: Launch) -> bool:
        """Whether, before this launch ended, storage was struck in a way that no command is asked to survive."""
        promised: set[str] = {*self.start.guarantees, "world-size-change"}
        until = launch.end.index if launch.end is not None else len(self.events)
        return any(_damages(at.event, promised) for at in self.events[: until + 1])

    @property
    def topology_changed(self) -> bool:
        """Whether some launch had another number of ranks than the first."""
        return len({launch.start.event.ranks for launch in self.launches}) > 1


def _damages(event: AnyEvent, promised: set[str]) -> bool:
    if isinstance(event, j.StorageMutated):
        return event.damages
    if isinstance(event, j.FaultInjected):
        return not set(event.needs) <= promised
    return isinstance(event, j.StorageDestroyed)
