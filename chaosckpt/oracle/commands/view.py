"""What a command's journal tells, attempt by attempt."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from chaosckpt.model import journal as j
from chaosckpt.model.journal import AnyEvent, Journal
from chaosckpt.oracle.view import At, E, ended_by_fault

_OF_SAVE = re.compile(r"of save (\d+)$")


@dataclass(frozen=True)
class Launch:
    """One launch of the command. `before` is what lay on storage when it began; None before the first launch."""

    number: int
    start: At[j.AttemptStarted]
    events: tuple[At[AnyEvent], ...]
    before: At[j.CheckpointsSeen] | None

    def all(self, kind: type[E]) -> list[At[E]]:
        return [At(at.index, at.event) for at in self.events if isinstance(at.event, kind)]

    @property
    def closing(self) -> bool:
        return self.start.event.closing

    @property
    def end(self) -> At[j.AttemptEnded] | None:
        return next(iter(self.all(j.AttemptEnded)), None)

    @property
    def outcome(self) -> str:
        return self.end.event.outcome if self.end is not None else ""

    @property
    def exit(self) -> At[j.RankExited] | None:
        """How the command's own process ended."""
        return next((at for at in self.all(j.RankExited) if at.event.rank == 0), None)

    @property
    def killed(self) -> bool:
        return any(ended_by_fault(at.event) for at in self.all(j.RankExited))

    @property
    def after(self) -> At[j.CheckpointsSeen] | None:
        return next(iter(self.all(j.CheckpointsSeen)), None)

    @property
    def resumed(self) -> tuple[At[j.Said], ...]:
        """The lines that say which step was resumed from."""
        return tuple(at for at in self.all(j.Said) if at.event.what == "resumed")

    @property
    def saved(self) -> tuple[At[j.Said], ...]:
        """The lines that say that a step was saved."""
        return tuple(at for at in self.all(j.Said) if at.event.what == "saved")

    @functools.cached_property
    def disturbed(self) -> tuple[int, ...]:
        """Indices of what faults did in this launch: they may be why its recovery went wrong, or why it ended."""
        return tuple(
            at.index for at in self.events if isinstance(at.event, (j.FaultLanded, j.ErrorInjected)) and _runs(at.event)
        )

    @functools.cached_property
    def struck_in_recovery(self) -> tuple[int, ...]:
        """Indices of the faults that landed before this launch had read its checkpoint, as far as labels tell."""
        landed = [at.index for at in self.all(j.FaultLanded) if at.event.label.endswith("of the recovery")]
        return tuple(landed)


def _runs(event: AnyEvent) -> bool:
    """Whether a fault struck while the command ran, and not between two launches."""
    return not isinstance(event, j.FaultLanded) or event.operation is not None


class CommandView:
    """One trial of a command. Raises ValueError for a journal that doesn't begin with TrialStarted."""

    def __init__(self, journal: Journal) -> None:
        if not journal.events or not isinstance(journal.events[0], j.TrialStarted):
            raise ValueError("this journal doesn't begin with the start of a trial")
        self.journal = journal
        self.start = journal.events[0]

    def judges(self, sign: str) -> bool:
        """Whether this sign is known and steady, by the golden runs."""
        return sign in self.start.judged

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
                    if other.event.attempt == number and not isinstance(other.event, j.TrialStarted)
                )
                launch = Launch(number, At(at.index, at.event), own, before)
                yield launch
                before = launch.after or before

    @property
    def closing(self) -> Launch | None:
        return next((launch for launch in self.launches if launch.closing), None)

    def acknowledged(self, before: Launch) -> At[j.Said] | None:
        """The newest step that the command said it had saved, in any earlier launch."""
        lines = [at for launch in self.launches if launch.number < before.number for at in launch.saved]
        known = [at for at in lines if at.event.step is not None]
        return max(known, key=lambda at: (at.event.step or 0, at.index), default=None)

    def whole_before(self, launch: Launch) -> tuple[int, ...]:
        """The steps that were complete on storage when this launch began."""
        return launch.before.event.complete if launch.before is not None else ()

    def cut_short_before(self, launch: Launch) -> frozenset[int]:
        """Steps in whose save, or right behind it, a fault struck the launch before: something of it may be missing elsewhere."""
        last = next((other for other in reversed(self.launches) if other.number < launch.number), None)
        labels = [at.event.label for at in last.all(j.FaultLanded)] if last is not None else []
        return frozenset(int(found[1]) for label in labels if (found := _OF_SAVE.search(label)) is not None)

    def partial_before(self, launch: Launch) -> tuple[int, ...]:
        return launch.before.event.partial if launch.before is not None else ()

    def once_whole(self, before: Launch) -> int | None:
        """The newest step that was ever found complete before this launch."""
        seen = [
            step
            for launch in self.launches
            if launch.number < before.number and launch.after
            for step in launch.after.event.complete
        ]
        return max(seen, default=None)
