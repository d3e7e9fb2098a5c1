"""The truth of a trial: which saves there were, who acknowledged them, what was destroyed, and what each recovery
owes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.journal import Acknowledged, FaultLanded, RankExited, SaveStarted, StorageDestroyed
from chaosckpt.model.topology import Topology
from chaosckpt.oracle.view import At, AttemptView, TrialView

Status = Literal["acknowledged", "indeterminate", "started"]
Duty = Literal["must-recover", "may-recover", "must-refuse", "may-start"]
"""What a recovery owes. must-recover: something is required. may-recover: something may be left, nothing is owed.
must-refuse: nothing can be left, and an empty hand is an error. may-start: nothing can be left, and step 0 is fine."""

SHARED, LOCAL = "shared", "local"

_NEEDED: dict[str, Guarantee | None] = {
    "node-loss": "node-loss",
    "local-storage-loss": "local-storage-loss",
    "shared-storage-loss": None,
}
"""The guarantee by which a checkpoint outlives each loss of storage. None: no guarantee covers it."""


@dataclass(frozen=True)
class Save:
    """One save: the same step saved again by a later attempt is another one.

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
    def status(self) -> Status:
        everyone = range(self.topology.world_size)
        if all(rank in self.started and self.acknowledged.get(rank) for rank in everyone):
            return "acknowledged"
        return "started" if self.lost_rank is None else "indeterminate"

    @property
    def first_index(self) -> int:
        return min(self.started.values())

    @property
    def evidence(self) -> tuple[int, ...]:
        """Indices of the events that it is known by."""
        acks = [index for levels in self.acknowledged.values() for index in levels.values()]
        return tuple(sorted([*self.started.values(), *acks]))

    def __str__(self) -> str:
        return f"step {self.step} saved by attempt {self.attempt}"


@dataclass(frozen=True)
class Reason:
    """Why a save counts or doesn't, with the indices of the journal events that say so."""

    save: Save
    words: str
    evidence: tuple[int, ...]


@dataclass(frozen=True)
class Owed:
    """What the recovery of one attempt owes: at most one required save; the permitted ones, newest first.

    `reasons` has one entry a save, newest first, and `notes` what else decided, both with their journal indices.
    """

    attempt: int
    duty: Duty
    required: Save | None
    permitted: tuple[Save, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def permits(self, save: Save) -> bool:
        return any(save.key == other.key for other in self.permitted)


def saves(view: TrialView) -> tuple[Save, ...]:
    """Every save that some rank started, oldest first."""
    found = []
    for attempt in view.attempts:
        started = [at for at in attempt.all(SaveStarted) if at.event.rank < attempt.world_size]
        for step in sorted({at.event.step for at in started}):
            of_step = [at for at in started if at.event.step == step]
            found.append(_save(attempt, step, of_step))
    return tuple(sorted(found, key=lambda save: save.key))


def _save(attempt: AttemptView, step: int, started: Sequence[At[SaveStarted]]) -> Save:
    acknowledged: dict[int, dict[str, int]] = {}
    for at in attempt.all(Acknowledged):
        if at.event.step == step:
            acknowledged.setdefault(at.event.rank, {}).setdefault(at.event.level, at.index)
    silent = [at.index for at in attempt.all(RankExited) if at.event.rank not in acknowledged]
    return Save(
        attempt=attempt.number,
        step=step,
        topology=attempt.topology,
        started={at.event.rank: at.index for at in started},
        digests={at.event.rank: at.event.digest for at in started},
        acknowledged=acknowledged,
        lost_rank=min(silent, default=None),
    )


def owed(view: TrialView, attempt: AttemptView) -> Owed:
    """What the recovery of this attempt owes, from what the journal shows of the time before it. Pure."""
    earlier = [save for save in saves(view) if save.attempt < attempt.number]
    earlier.sort(key=lambda save: save.key, reverse=True)
    losses = [at for at in view.all(StorageDestroyed) if at.index <= attempt.recovery_ends]
    tiers = {SHARED} | {level for save in earlier for levels in save.acknowledged.values() for level in levels}
    required: Save | None = None
    decided = False
    reasons = []
    for save in earlier:
        reason, candidate = _standing(save, losses, attempt)
        if candidate and not decided:
            decided = True
            breach = _breach(view, save, attempt)
            if breach is None:
                required = save
                reason = Reason(save, f"required: the newest one that is {reason.words}", reason.evidence)
            else:
                reason = Reason(save, f"{reason.words}, but {breach[0]}: not required", (*reason.evidence, *breach[1]))
        reasons.append(reason)
    notes: list[tuple[str, tuple[int, ...]]] = []
    if required is not None and attempt.recovery_harmed:
        harm = "an error was injected into this very recovery, or a rank killed in it, so nothing is required of it"
        notes.append((harm, attempt.recovery_harmed))
        required = None
    left = [save for save in earlier if not _surely_gone(save, tiers, losses)]
    permitted = tuple(save for save in left if required is None or save.key >= required.key)
    return Owed(
        attempt.number, _duty(view, attempt, required, permitted), required, permitted, tuple(reasons), tuple(notes)
    )


def _duty(view: TrialView, attempt: AttemptView, required: Save | None, permitted: Sequence[Save]) -> Duty:
    if required is not None:
        return "must-recover"
    if permitted:
        return "may-recover"
    return "must-refuse" if attempt.resumes and view.start.fresh_start == "refused" else "may-start"


def _standing(save: Save, losses: Sequence[At[StorageDestroyed]], attempt: AttemptView) -> tuple[Reason, bool]:
    """Why a save can or can't be required, guarantees aside; and whether it can."""
    if save.status != "acknowledged":
        who = ", ".join(str(rank) for rank in sorted(save.acknowledged)) or "no rank"
        words = f"only {save.status}: acknowledged by {'rank ' + who if save.acknowledged else who}, "
        words += f"started by {len(save.started)} of {save.topology.world_size} ranks; permitted if it is complete"
        evidence = save.evidence if save.lost_rank is None else (*save.evidence, save.lost_rank)
        return Reason(save, words, evidence), False
    levels = sorted({level for by_level in save.acknowledged.values() for level in by_level})
    for rank, by_level in sorted(save.acknowledged.items()):
        lost: set[int] = set()
        if not any(_level_stands(save, rank, level, losses, attempt, lost) for level in by_level):
            words = f"acknowledged, but the part of rank {rank} ({', '.join(sorted(by_level))}) "
            words += "was destroyed" if lost else "lies on a node from which this topology doesn't read it"
            return Reason(save, words, (*save.evidence, *sorted(lost))), False
    return Reason(save, f"acknowledged by every rank ({', '.join(levels)}) and not destroyed", save.evidence), True


def _level_stands(
    save: Save, rank: int, level: str, losses: Sequence[At[StorageDestroyed]], attempt: AttemptView, lost: set[int]
) -> bool:
    """Whether a rank's part of a save is still on this tier; adds the indices of the losses that took it to `lost`."""
    taken = [at.index for at in losses if _takes(at, save, rank, level)]
    lost.update(taken)
    return not taken and (level == SHARED or save.topology == attempt.topology)


def _takes(loss: At[StorageDestroyed], save: Save, rank: int, level: str) -> bool:
    if loss.event.tier != level or loss.index < save.started.get(rank, save.first_index):
        return False
    return loss.event.node is None or save.topology.node_of(rank) == loss.event.node


def _surely_gone(save: Save, tiers: set[str], losses: Sequence[At[StorageDestroyed]]) -> bool:
    """True when no tier that this target uses can still hold the whole save."""
    return all(any(_takes(loss, save, rank, tier) for loss in losses for rank in save.started) for tier in tiers)


def _breach(view: TrialView, save: Save, attempt: AttemptView) -> tuple[str, tuple[int, ...]] | None:
    """What struck the save outside the target's guarantees, in words, with the indices of its evidence."""
    promised = set(view.start.guarantees)
    if save.topology.world_size != attempt.world_size and "world-size-change" not in promised:
        saved = save.topology.world_size
        change = f"the target doesn't promise recovery by {attempt.world_size} ranks of what {saved} saved"
        return change, (attempt.start.index,)
    since = max(save.evidence)
    for at in view.events[save.first_index : attempt.recovery_ends + 1]:
        event = at.event
        if isinstance(event, StorageDestroyed):
            needed = _NEEDED[event.cause]
            if needed is None or needed not in promised:
                return f"{event.cause} struck, which the target doesn't promise to survive", (at.index,)
        elif isinstance(event, FaultLanded):
            missing = set(event.needs) - promised - {"world-size-change"}
            if missing:
                return f"{event.kind} struck, and the target doesn't promise {', '.join(sorted(missing))}", (at.index,)
        elif (
            isinstance(event, RankExited)
            and event.by != "self"
            and "process-crash" not in promised
            and at.index > since
        ):
            return "ranks were killed, which the target doesn't promise to survive", (at.index,)
    return None
