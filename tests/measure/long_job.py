"""A long job that trains, saves, fails at given moments and restarts, event by event: what the formulas are judged by.

It knows nothing of them. The same failures strike every interval that is tried, so that neighbours compare fairly.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

NEVER = float("inf")


def failure_times(mtbf: float, count: int, seed: int) -> list[float]:
    """Moments since the job began, with independent exponential times between them."""
    generator = random.Random(seed)
    return list(itertools.accumulate(generator.expovariate(1 / mtbf) for _ in range(count)))


@dataclass(frozen=True)
class Job:
    """Seconds: `stall` of each save, `completion` from its beginning, `slowdown` lost while it is written behind, `restart`."""

    interval: float
    stall: float
    completion: float
    slowdown: float
    restart: float

    def overhead(self, failures: Sequence[float]) -> float:
        """The time for something else than lasting training, over the time of training, up to the last failure."""
        kept, began = 0.0, 0.0
        for failure in failures:
            life = Life(self, kept)
            life.live(failure - began)
            kept, began = life.kept, failure + self.restart
            # A restart that a failure strikes begins again: the next failure finds it unfinished, and nothing is lived.
        return failures[-1] / kept - 1


@dataclass
class Life:
    """From the end of a restart to the next failure: where training stands, and what the newest complete checkpoint holds."""

    job: Job
    kept: float
    trained: float = 0.0
    now: float = 0.0
    written: float = NEVER
    """When the save that is under way will be complete."""
    captured: float = 0.0

    def live(self, seconds: float) -> None:
        """Train and save until the failure strikes, so many seconds from now; nothing at all where that is below 0."""
        self.trained, due = self.kept, self.kept + self.job.interval
        while self.now < seconds:
            if self.trained < due:
                self._train(due, seconds)
            elif self.written < NEVER:
                self._pass_until(self.written, seconds)
            else:
                self._begin(seconds)
                due = self.trained + self.job.interval

    def _train(self, due: float, end: float) -> None:
        behind = self.job.completion - self.job.stall
        speed = 1.0 if self.written == NEVER else 1 - self.job.slowdown / behind
        reached = NEVER if speed == 0 else self.now + (due - self.trained) / speed
        if reached <= min(self.written, end):
            self.now, self.trained = reached, due
            self._complete()
            return
        passed = min(self.written, end) - self.now
        self.trained += passed * speed
        self._pass_until(self.written, end)

    def _begin(self, end: float) -> None:
        """Training stands still for the stall; the save may be complete with it, or later."""
        self.captured = self.trained
        self.written = self.now + self.job.completion
        self._pass_until(self.now + self.job.stall, end)

    def _pass_until(self, moment: float, end: float) -> None:
        self.now = min(moment, end)
        self._complete()

    def _complete(self) -> None:
        if self.written <= self.now:
            self.kept, self.written = self.captured, NEVER
