"""The saves of a trial: who started each, what was captured, who was told that it is safe, and which errors were injected into it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import Acknowledged, ErrorInjected, FaultInjected, RankExited, SaveStarted
from chaosckpt.model.phrasing import describe_operation
from chaosckpt.model.topology import Topology
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView

_OF_SAVE = re.compile(r"\bsave (\d+)$")
Status = Literal["acknowledged", "indeterminate", "started"]


@dataclass(frozen=True)
class Save:
    """One save: the same step saved again by a later attempt is another one; tried again in the same attempt it is the
    same, and its last try counts.

    `started` and `acknowledged` hold journal indices, by rank (and level). `lost_rank` is the exit of a rank that
    ended before it acknowledged, if there is one.
    """

    attempt: int
    step: int
    topology: Topology
    started: dict[int, int]
    digests: dict[int, StateDigest]
    acknowledged: dict[int, dict[str, int]]
    lost_rank: int | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Saves are ordered by step, then by attempt: the greatest is the newest."""
        return self.step, self.attempt

    @property
    def started_by_all(self) -> bool:
        return len(self.started) == self.topology.world_size

    @property
    def status(self) -> Status:
        everyone = range(self.topology.world_size)
        if all(rank in self.started and self.acknowledged.get(rank) for rank in everyone):
            return "acknowledged"
        return "started" if self.lost_rank is None else "indeterminate"

    @property
    def levels(self) -> tuple[str, ...]:
        """The tiers that it was acknowledged on."""
        return tuple(sorted({level for levels in self.acknowledged.values() for level in levels}))

    @property
    def first_index(self) -> int:
        return min(self.started.values())

    @property
    def evidence(self) -> tuple[int, ...]:
        """Indices of the events that it is known by."""
        acks = [index for levels in self.acknowledged.values() for index in levels.values()]
        return tuple(sorted([*self.started.values(), *acks]))

    def __str__(self) -> str:
        return f"step {self.step} saved in attempt {self.attempt}"

    @property
    def briefly(self) -> str:
        """The step, with the attempt where it isn't the first one."""
        return str(self) if self.attempt else f"step {self.step}"


@functools.lru_cache(maxsize=4)
def saves(view: TargetView) -> tuple[Save, ...]:
    """Every save that some rank started, oldest first."""
    found = []
    for attempt in view.attempts:
        of_step: dict[int, list[At[SaveStarted]]] = {}
        for at in attempt.all(SaveStarted):
            if at.event.rank < attempt.world_size:
                of_step.setdefault(at.event.step, []).append(at)
        found += [_save(attempt, step, started) for step, started in of_step.items()]
    return tuple(sorted(found, key=lambda save: save.key))


def _save(attempt: TargetAttempt, step: int, begun: Sequence[At[SaveStarted]]) -> Save:
    # A save that failed and is tried again starts anew: of a rank's starts the last one counts.
    started = {at.event.rank: at.index for at in begun}
    acknowledged: dict[int, dict[str, int]] = {}
    for at in attempt.all(Acknowledged):
        if at.event.step == step and at.index > started.get(at.event.rank, -1):
            acknowledged.setdefault(at.event.rank, {}).setdefault(at.event.level, at.index)
    silent = [at.index for at in attempt.all(RankExited) if at.event.rank not in acknowledged]
    return Save(
        attempt=attempt.number,
        step=step,
        topology=attempt.topology,
        started=started,
        digests={at.event.rank: at.event.digest for at in begun},
        acknowledged=acknowledged,
        lost_rank=min(silent, default=None),
    )


@dataclass(frozen=True)
class Injected:
    """One error injected into the save of `step` in an attempt. `labelled`: the census says so, not only the order of
    events."""

    at: At[ErrorInjected]
    step: int
    labelled: bool

    def __str__(self) -> str:
        return described(self.at)


def described(error: At[ErrorInjected]) -> str:
    """An injected error as a clause."""
    return f"a fault hit {describe_operation(error.event.operation.address)} ({error.event.error})"


def injected(attempt: TargetAttempt) -> list[Injected]:
    """Those of one attempt, in order; errors injected into its recovery aren't among them."""
    labels = {
        landed.event.operation.address: landed.event.label
        for landed in attempt.all(FaultInjected)
        if landed.event.operation is not None
    }
    found = []
    for at in attempt.all(ErrorInjected):
        rank = at.event.rank
        label = labels.get(at.event.operation.address, "")
        named = _OF_SAVE.search(label)
        if named is not None:
            found.append(Injected(at, int(named.group(1)), labelled=True))
        elif not label and rank < attempt.world_size:
            begun = [s.event.step for s in attempt.tracks[rank].all(SaveStarted) if s.index < at.index]
            found += [Injected(at, begun[-1], labelled=False)] if begun else []
    return found


def overcome(view: TargetView, save: Save) -> list[Injected]:
    """The errors that were injected into a save before the rank that met them was told that its part is safe."""
    attempt = view.attempt(save.attempt)
    if attempt is None or save.status != "acknowledged":
        return []
    told = {rank: max(levels.values()) for rank, levels in save.acknowledged.items()}
    errors = [error for error in injected(attempt) if error.step == save.step]
    return [error for error in errors if error.at.index < told.get(error.at.event.rank, 0)]


def save_of(view: TargetView, attempt: int, step: int) -> Save | None:
    """This attempt's save of this step, if a rank started one."""
    return next((save for save in saves(view) if save.key == (step, attempt)), None)
