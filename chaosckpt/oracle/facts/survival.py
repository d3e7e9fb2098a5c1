"""What a save has survived: which tiers still hold it, and whether something struck it that the target never promised
to survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.journal import FaultInjected, RankExited, StorageDestroyed, StorageMutated
from chaosckpt.model.phrasing import describe_path, describe_tier, plural
from chaosckpt.model.topology import Topology
from chaosckpt.oracle.facts.saves import Save
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView
from chaosckpt.oracle.phrasing import tiers as storage

SHARED = "shared"

_NEEDED: dict[str, Guarantee | None] = {
    "node-loss": "node-loss",
    "local-storage-loss": "local-storage-loss",
    "shared-storage-loss": None,
}
"""The guarantee by which a checkpoint outlives each loss of storage. None: no guarantee covers it."""


@dataclass(frozen=True)
class Reason:
    """Why a save counts or doesn't, with the indices of the journal events that say so."""

    save: Save
    words: str
    evidence: tuple[int, ...]


@dataclass(frozen=True)
class Reader:
    """Who wants to read saves: the ranks of a launch at `start`, which sees what the journal tells up to `until`."""

    topology: Topology
    start: int
    until: int

    @classmethod
    def recovery(cls, attempt: TargetAttempt) -> Reader:
        return cls(attempt.topology, attempt.start.index, attempt.recovery_ends)

    def losses(self, view: TargetView) -> list[At[StorageDestroyed]]:
        """The losses of storage before it read."""
        return [at for at in view.all(StorageDestroyed) if at.index <= self.until]


def standing(save: Save, losses: Sequence[At[StorageDestroyed]], reader: Reader) -> tuple[Reason, bool]:
    """Why a save can or can't be required, guarantees aside; and whether it can."""
    if save.status != "acknowledged":
        who = ", ".join(str(rank) for rank in sorted(save.acknowledged)) or "no rank"
        words = f"only {save.status}: acknowledged by {'rank ' + who if save.acknowledged else who}, "
        words += f"started by {len(save.started)} of {save.topology.world_size} ranks; accepted if it is complete"
        evidence = save.evidence if save.lost_rank is None else (*save.evidence, save.lost_rank)
        return Reason(save, words, evidence), False
    for rank, by_level in sorted(save.acknowledged.items()):
        lost: set[int] = set()
        if not any(_level_stands(save, rank, level, losses, reader, lost) for level in by_level):
            words = f"acknowledged, but the part of rank {rank} on {storage(by_level)} "
            words += "was destroyed" if lost else "is on a node from which this topology doesn't read it"
            return Reason(save, words, (*save.evidence, *sorted(lost))), False
    return Reason(save, f"acknowledged by every rank ({storage(save.levels)}) and not destroyed", save.evidence), True


def _level_stands(
    save: Save, rank: int, level: str, losses: Sequence[At[StorageDestroyed]], reader: Reader, lost: set[int]
) -> bool:
    """Whether a rank's part of a save is still on this tier; adds the indices of the losses that took it to `lost`."""
    taken = [at.index for at in losses if _takes(at, save, rank, level)]
    lost.update(taken)
    return not taken and (level == SHARED or save.topology == reader.topology)


def _takes(loss: At[StorageDestroyed], save: Save, rank: int, level: str) -> bool:
    if loss.event.tier != level or loss.index < save.started.get(rank, save.first_index):
        return False
    return loss.event.node is None or save.topology.node_of(rank) == loss.event.node


def surely_gone(save: Save, tiers: set[str], losses: Sequence[At[StorageDestroyed]]) -> bool:
    """True when no tier that this target uses can still hold the whole save."""
    return all(any(_takes(loss, save, rank, tier) for loss in losses for rank in save.started) for tier in tiers)


def breach(view: TargetView, save: Save, reader: Reader) -> tuple[str, tuple[int, ...]] | None:
    """What struck the save outside the target's guarantees, or damaged it, in words, with the indices of its evidence."""
    promised = set(view.start.guarantees)
    if save.topology.world_size != reader.topology.world_size and "world-size-change" not in promised:
        saved = save.topology.world_size
        change = f"the target doesn't promise that {reader.topology.world_size} ranks can recover what {plural(saved, 'rank')} saved"
        return change, (reader.start,)
    since = max(save.evidence)
    for at in view.events[save.first_index : reader.until + 1]:
        event = at.event
        if isinstance(event, StorageDestroyed):
            needed = _NEEDED[event.cause]
            if needed is None or needed not in promised:
                return f"a {event.cause} fault was injected, and the target doesn't promise to survive it", (at.index,)
        elif isinstance(event, StorageMutated):
            if event.damages:
                # Which checkpoints need that file only the target knows, so each may be refused from then on.
                return (
                    f"{describe_path(event.path) if event.path else describe_tier(event.tier)} was damaged ({event.what})",
                    (at.index,),
                )
        elif isinstance(event, FaultInjected):
            missing = set(event.needs) - promised - {"world-size-change"}
            if missing:
                return (
                    f"a {event.kind} fault was injected, and the target doesn't promise {', '.join(sorted(missing))}",
                    (at.index,),
                )
        elif (
            isinstance(event, RankExited)
            and event.by != "self"
            and "process-crash" not in promised
            and at.index > since
        ):
            return "ranks were killed, and the target doesn't promise to survive that", (at.index,)
    return None
