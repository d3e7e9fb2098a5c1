"""What a command's journal tells, attempt by attempt: the view that its invariants judge."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from chaosckpt.model import journal as j
from chaosckpt.model.journal import AnyEvent
from chaosckpt.model.operation import READING
from chaosckpt.model.scenario import CommandSettings
from chaosckpt.oracle.blame import ended_by_fault
from chaosckpt.oracle.facts.view import At, Events, JournalView

_OF_SAVE = re.compile(r"of save (\d+)$")


@dataclass(frozen=True, eq=False)
class CommandAttempt(Events):
    """One attempt of the command. `before` is what lay on storage when it began; None before the first attempt."""

    number: int
    start: At[j.AttemptStarted]
    events: tuple[At[AnyEvent], ...]
    before: At[j.CheckpointsSeen] | None

    @property
    def closing(self) -> bool:
        return self.start.event.closing

    @property
    def world_size(self) -> int:
        return sum(self.start.event.ranks)

    @property
    def end(self) -> At[j.AttemptEnded] | None:
        return self.first(j.AttemptEnded)

    @property
    def outcome(self) -> str:
        return self.end.event.outcome if self.end is not None else ""

    @property
    def operations(self) -> int:
        """How many operations its ranks performed together."""
        return sum(self.end.event.operations) if self.end is not None else 0

    @property
    def exit(self) -> At[j.RankExited] | None:
        """How the command's own process ended."""
        return next((at for at in self.all(j.RankExited) if at.event.rank == 0), None)

    @functools.cached_property
    def killed(self) -> bool:
        return any(ended_by_fault(at.event) for at in self.all(j.RankExited))

    @functools.cached_property
    def after(self) -> At[j.CheckpointsSeen] | None:
        return self.first(j.CheckpointsSeen)

    @functools.cached_property
    def resumed(self) -> tuple[At[j.Said], ...]:
        """The lines that say which step was resumed from."""
        return tuple(at for at in self.all(j.Said) if at.event.what == "resumed")

    @functools.cached_property
    def saved(self) -> tuple[At[j.Said], ...]:
        """The lines that say that a step was saved."""
        return tuple(at for at in self.all(j.Said) if at.event.what == "saved")

    @functools.cached_property
    def chosen(self) -> int | None:
        """The one step that it said it resumed from; None where it said none, or several.

        Several come from ranks that disagree, from a script that tries one after the other, or from a launcher that starts ranks
        again by itself, and which of these it was the lines don't tell.
        """
        steps = {at.event.step for at in self.resumed}
        if self.started_again:
            return None
        return next(iter(steps)) if len(steps) == 1 else None

    @property
    def started_again(self) -> bool:
        """Whether its ranks may have been started again within it, by a launcher that does so when a fault took one of them."""
        probed = {(at.event.rank, at.event.step): at for at in self.all(j.Probed) if at.event.what == "resumed"}
        lines = len(self.resumed) - len({step for rank, step in probed if rank == 0})
        return bool(self.disturbed) and (lines > self.world_size or len({step for _, step in probed}) > 1)

    @property
    def read_what_it_chose(self) -> bool:
        """Whether it read a file of the step that it said it resumed from, as far as that is known.

        Some scripts keep the same state elsewhere, too, in a file that isn't numbered.
        """
        read = self.after.event.read if self.after is not None else None
        return read is None or self.chosen in read

    @functools.cached_property
    def disturbed(self) -> tuple[int, ...]:
        """Indices of what faults did while it ran: they may be why its recovery went wrong, or why it ended."""
        return tuple(at.index for at in self.events if _struck(at.event))

    @functools.cached_property
    def struck_in_recovery(self) -> tuple[int, ...]:
        """Indices of the faults that may have struck before it had read its checkpoint, as far as labels tell."""
        return tuple(at.index for at in self.events if _struck(at.event) and _may_be_recovery(at.event))

    @functools.cached_property
    def struck_saves(self) -> frozenset[int]:
        """The steps in whose saves faults struck this attempt."""
        labels = [at.event.label for at in self.all(j.FaultInjected) if at.event.operation is not None]
        return frozenset(int(found[1]) for label in labels if (found := _OF_SAVE.search(label)) is not None)

    @functools.cached_property
    def erred_saves(self) -> dict[int, At[j.ErrorInjected]]:
        """The steps into whose saves, retention aside, this attempt had an error injected, each with the first."""
        errors = {at.event.operation.address: at for at in reversed(self.all(j.ErrorInjected))}
        found: dict[int, At[j.ErrorInjected]] = {}
        for at in self.all(j.FaultInjected):
            named = _OF_SAVE.search(at.event.label)
            if named is None or at.event.operation is None or at.event.label.startswith("retire"):
                continue
            error = errors.get(at.event.operation.address)
            if error is not None:
                found.setdefault(int(named[1]), error)
        return found

    @functools.cached_property
    def struck_retention(self) -> bool:
        """Whether a fault struck while it removed older checkpoints."""
        return any(at.event.label.startswith("retire") for at in self.all(j.FaultInjected))

    @property
    def undisturbed(self) -> bool:
        """Whether it came to its end with no fault in it."""
        return self.outcome == "finished" and not self.disturbed

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, with an error, and no fault in it explains that."""
        return self.outcome == "failed" and not self.disturbed

    @property
    def ending(self) -> str:
        """How its own process ended."""
        found = self.exit.event if self.exit is not None else None
        if found is None:
            return "without an exit status"
        return f"by signal {found.signal}" if found.signal is not None else f"with status {found.exit_code}"

    @property
    def tail(self) -> str:
        """The end of what it printed, where it failed."""
        return self.exit.event.stderr_tail if self.exit is not None else ""


def _struck(event: AnyEvent) -> bool:
    """Whether a fault struck while the command ran, and not between two attempts."""
    return isinstance(event, j.ErrorInjected) or (isinstance(event, j.FaultInjected) and event.operation is not None)


def _may_be_recovery(event: AnyEvent) -> bool:
    if isinstance(event, j.ErrorInjected):
        return event.operation.address.op in READING
    return isinstance(event, j.FaultInjected) and event.label.endswith("of the recovery")


class CommandView(JournalView):
    """One trial of a command."""

    @property
    def command(self) -> CommandSettings:
        return self.scenario.command or CommandSettings(argv=())

    def judges(self, *markers: str) -> bool:
        """Whether all these markers are known and steady, by the golden runs; see TrialStarted.judged."""
        return set(markers) <= set(self.start.judged)

    @functools.cached_property
    def attempts(self) -> tuple[CommandAttempt, ...]:
        return tuple(self._attempts())

    def _attempts(self) -> Iterator[CommandAttempt]:
        before: At[j.CheckpointsSeen] | None = None
        for at in self.events:
            if isinstance(at.event, j.AttemptStarted):
                number = at.event.attempt
                own = tuple(
                    other
                    for other in self.events
                    if other.event.attempt == number and not isinstance(other.event, (j.TrialStarted, j.TrialEnded))
                )
                attempt = CommandAttempt(number, At(at.index, at.event), own, before)
                yield attempt
                before = attempt.after or before

    @property
    def closing(self) -> CommandAttempt | None:
        return next((attempt for attempt in self.attempts if attempt.closing), None)

    def earlier(self, attempt: CommandAttempt) -> tuple[CommandAttempt, ...]:
        """The attempts before this one, in order."""
        return tuple(other for other in self.attempts if other.start.index < attempt.start.index)

    @functools.cached_property
    def recoveries(self) -> tuple[CommandAttempt, ...]:
        """The attempts that had something to recover from or not, and in whose recovery no fault struck."""
        return tuple(
            attempt
            for attempt in self.attempts
            if attempt.before is not None and not attempt.struck_in_recovery and not self.damaged_before(attempt)
        )

    def damaged_before(self, attempt: CommandAttempt) -> bool:
        """Whether, before this attempt ended, storage was struck in a way that no command is asked to survive."""
        promised: set[str] = {*self.start.guarantees, "world-size-change"}
        until = attempt.end.index if attempt.end is not None else len(self.events)
        return any(_damages(at.event, promised) for at in self.events[: until + 1])

    @property
    def topology_changed(self) -> bool:
        """Whether some attempt had another number of ranks than the first."""
        return len({attempt.start.event.ranks for attempt in self.attempts}) > 1


def _damages(event: AnyEvent, promised: set[str]) -> bool:
    if isinstance(event, j.StorageMutated):
        return event.damages
    if isinstance(event, j.FaultInjected):
        return not set(event.needs) <= promised
    return isinstance(event, j.StorageDestroyed)
