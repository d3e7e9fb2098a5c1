"""Deadlines: how long the harness waits, as multiples of what the golden run took."""

from __future__ import annotations

import msgspec

from chaosckpt.model.census import Pauses

_SHORTEST_PAUSE_SECONDS = 0.05


class Deadlines(msgspec.Struct, frozen=True):
    """Waiting times for one attempt. They end a wait for something that doesn't come; they never decide where a fault strikes.

    `factor` is 1, or 3 where a hang is being confirmed.
    """

    golden_seconds: float = 1.0
    factor: float = 1.0
    floor_seconds: float = 10.0
    """What a machine that others use may take for nothing at all."""
    pauses: Pauses = Pauses()
    """Those of the golden run."""

    @property
    def hang_seconds(self) -> float:
        """Quiet (no report, no operation) for so long, with every thread at rest, is a hang."""
        return self.factor * max(self.floor_seconds, 8 * self.golden_seconds)

    @property
    def collective_seconds(self) -> float:
        """The job's own limit on a collective: well below the hang, so that the job's error comes first."""
        return max(5.0, 4 * self.golden_seconds)

    @property
    def rest_seconds(self) -> float:
        """How long rest is waited for before a fault is given up as not arrived."""
        return self.factor * max(2 * self.floor_seconds, 8 * self.golden_seconds)

    @property
    def watch_seconds(self) -> float:
        """Nothing gets anywhere for so long: rest is told by time (chaosckpt/engine/runner/quiescence.py). 0: it never is."""
        return 10 * max(self.pauses.between, _SHORTEST_PAUSE_SECONDS) if self.pauses.first else 0.0

    @property
    def busy_seconds(self) -> float:
        """CPU time that what runs must have used in such a watch: a rank that is being launched runs, too."""
        return max(self.watch_seconds, 3 * self.pauses.first)

    @property
    def grace_seconds(self) -> float:
        """How long survivors of a dead rank may go on."""
        return self.factor * (self.collective_seconds + max(5.0, 4 * self.golden_seconds))

    @property
    def longest_seconds(self) -> float:
        """An attempt that is busy for so long without an end is taken for hung, too."""
        return 20 * self.hang_seconds
