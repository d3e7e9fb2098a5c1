"""Shrinking: from a schedule that shows a violation to the simplest one that still does, by a domain reducer.

A `Shrinker` asks which of some candidates is the first, in order, that still fails; whoever runs trials answers. So
the result is the same at any width: results that came in ahead are remembered, and count only when their turn comes.
Schedules that fail for one cause tend to end as the same schedule, because every trigger moves to the earliest
operation, of the first save and the lowest rank, at which the violation still shows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

import msgspec

from chaosckpt.campaign.shrink import reduction
from chaosckpt.model.census import Census
from chaosckpt.model.schedule import Schedule
from chaosckpt.strategies.prediction import CensusIndex

CAP = 60
"""Trials that one finding may cost, at most, before the best schedule so far is taken."""

Outcome = bool | None
"""True: the violation shows. False: it doesn't. None: inconclusive, which shrinking takes for no."""


class ShrinkResult(msgspec.Struct, frozen=True):
    """`trials` counts the candidates whose outcome decided something; `complete` is False where the cap ended the
    search."""

    schedule: Schedule
    trials: int
    complete: bool
    journal: tuple[tuple[str, Outcome], ...]
    """Every outcome that was told, by schedule digest: given to another Shrinker, it goes on from here."""


class Shrinker:
    """The search from `schedule`, which is known to fail, on the runs of `census`.

    Take `wanted`, run those trials, `tell` their outcomes, until `done`. `known` is the journal of a search that was
    interrupted.
    """

    def __init__(
        self,
        schedule: Schedule,
        census: Census,
        *,
        cap: int = CAP,
        known: Iterable[tuple[str, Outcome]] = (),
    ) -> None:
        self.best = schedule
        self.cap = cap
        self.done = False
        self.complete = False
        self._outcomes: dict[str, Outcome] = {schedule.digest: True}
        self._journal: list[tuple[str, Outcome]] = []
        self._counted: set[str] = set()
        self._start = schedule.digest
        self._search = self._reduce(CensusIndex(census))
        self._question: Sequence[Schedule] = ()
        self._at = 0
        for digest, outcome in known:
            self._remember(digest, outcome)
        self._answer(None)
        self._go_on()

    @property
    def trials(self) -> int:
        """Candidates whose outcome has decided something so far."""
        return len(self._counted)

    def wanted(self, width: int = 1) -> tuple[Schedule, ...]:
        """The next schedules to try, at most `width`, in the order in which they count; none when done."""
        if self.done:
            return ()
        found: dict[str, Schedule] = {}
        for candidate in self._question[self._at :]:
            if len(found) >= min(width, self.cap - self.trials):
                break
            if candidate.digest not in self._outcomes:
                found.setdefault(candidate.digest, candidate)
        return tuple(found.values())

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """The outcome of a schedule that was wanted; told in any order."""
        self._remember(schedule.digest, outcome)
        self._go_on()

    def result(self) -> ShrinkResult:
        return ShrinkResult(self.best, self.trials, self.complete, tuple(self._journal))

    def _remember(self, digest: str, outcome: Outcome) -> None:
        if digest not in self._outcomes:
            self._outcomes[digest] = outcome
            self._journal.append((digest, outcome))

    def _go_on(self) -> None:
        """Use outcomes as far as they are known."""
        while not self.done:
            if self._at == len(self._question):
                self._answer(None)
                continue
            candidate = self._question[self._at]
            digest = candidate.digest
            if digest not in self._counted and digest != self._start:
                if self.trials >= self.cap:
                    self.done = True
                    return
                if digest not in self._outcomes:
                    return
                self._counted.add(digest)
            if self._outcomes[digest]:
                self._answer(candidate)
            else:
                self._at += 1

    def _answer(self, found: Schedule | None) -> None:
        """Tell the search which candidate of its question failed first, and take its next question."""
        if found is not None:
            self.best = found
        try:
            self._question = self._search.send(found)
            self._at = 0
        except StopIteration:
            self.done = self.complete = True

    def _reduce(self, census_index: CensusIndex) -> Generator[Sequence[Schedule], Schedule | None, None]:
        """Ask for the first of some candidates that fails; `best` is that one by the time the answer comes."""
        start = None
        while start != self.best:
            start = self.best
            for steps in (reduction.attempts_dropped, reduction.faults_dropped, reduction.faults_simplified):
                yield from steps(census_index, self.best)


def shrink(
    schedule: Schedule,
    still_fails: Callable[[Schedule], Outcome],
    census: Census,
    *,
    cap: int = CAP,
    known: Iterable[tuple[str, Outcome]] = (),
) -> ShrinkResult:
    """Shrink with one trial at a time: `still_fails` runs a schedule and says whether the same violation shows."""
    shrinker = Shrinker(schedule, census, cap=cap, known=known)
    while wanted := shrinker.wanted():
        shrinker.tell(wanted[0], still_fails(wanted[0]))
    return shrinker.result()
