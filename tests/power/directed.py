"""For each canary the schedule that shows its bug, by hand: what the search has to find by itself, in one trial."""

from __future__ import annotations

from chaosckpt.faults.bit_flip import BitFlip
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.mtimes import Mtimes
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.space import Space
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address, Role
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology
from tests.power.lag import Lag

SECOND, THIRD = "step-000002", "step-000003"


def at(op: str, path: str, rank: int = 0, *, incarnation: int = 0, nth: int = 0, role: Role = "main") -> Address:
    """An operation on shared storage; of a file that this rank writes, in its first incarnation."""
    return Address(rank, role, op, f"shared:{path}", max(incarnation, int(op in ("open_write", "write"))), nth)


def cut(op: str, path: str, rank: int = 0, *, incarnation: int = 0, nth: int = 0, role: Role = "main") -> Cut:
    """The whole job is killed before an operation."""
    return Cut((Trigger(at(op, path, rank, incarnation=incarnation, nth=nth, role=role)),))


def schedule(*attempts: list[Fault]) -> Schedule:
    """These faults in these attempts."""
    return Schedule(tuple(AttemptPlan(tuple(faults)) for faults in attempts))


NO_FAULT = schedule()
RESTART = Cut((Trigger(at("rename", f"{THIRD}.tmp"), "after"),))
RESTARTED = schedule([RESTART])
EMPTIED = schedule([RESTART], [SharedStorageLoss()])
GROWN = schedule([RESTART], [WorldSize(Topology((1, 1, 1)))])
INTERRUPTED = schedule([cut("write", f"{SECOND}.tmp/rank-0.pt")])

LIKE_ATOMIC: dict[str, Schedule] = {
    "canary-added-position-lost": GROWN,
    "canary-added-rng-copied": GROWN,
    "canary-added-rng-unset": GROWN,
    "canary-blocked": INTERRUPTED,
    "canary-error-retired": schedule([StorageError(Trigger(at("open_write", f"{SECOND}.tmp/rank-1.pt", 1)))]),
    "canary-exit-zero": EMPTIED,
    "canary-hang": INTERRUPTED,
    "canary-misreport": INTERRUPTED,
    "canary-oldest": RESTARTED,
    "canary-one-notices": schedule([StorageError(Trigger(at("open_write", f"{THIRD}.tmp/rank-1.pt", 1)))]),
    "canary-optimizer-lost": RESTARTED,
    "canary-pointer-early": INTERRUPTED,
    "canary-resized-position": schedule(
        [Cut((Trigger(at("rename", f"{SECOND}.tmp"), "after"),))], [WorldSize(Topology((1, 1, 1)))]
    ),
    "canary-retires-first": schedule([cut("rename", f"{SECOND}.tmp")]),
    "canary-rng-lost": RESTARTED,
    "canary-sampler-lost": RESTARTED,
    "canary-save-advances": NO_FAULT,
    "canary-save-draws": NO_FAULT,
    "canary-scheduler-lost": RESTARTED,
    "canary-shared-rng": RESTARTED,
    "canary-silent-start": EMPTIED,
    "canary-space-ignored": schedule([Space(40_000)]),
    "canary-unreadable-deleted": schedule([], [StorageError(Trigger(at("open_read", f"{THIRD}/state.pt")))]),
    "canary-youngest-kept": schedule([RESTART], [Mtimes()]),
}
"""Canaries that meet these operations as torch-save-atomic does."""

LIKE_ASYNC: dict[str, Schedule] = {
    "canary-early-acknowledgement": schedule([cut("open_write", f"{THIRD}.tmp/state.pt", role="thread")]),
    "canary-live-snapshot": schedule(
        [Lag(Trigger(at("open_write", f"{SECOND}.tmp/state.pt", role="thread"))), cut("mkdir", f"{THIRD}.tmp")]
    ),
    "canary-thread-error-lost": schedule(
        [StorageError(Trigger(at("open_write", f"{SECOND}.tmp/rank-0.pt", role="thread")))]
    ),
    "canary-unawaited": NO_FAULT,
    "canary-unbounded": NO_FAULT,
}
"""Canaries that meet these operations as torch-save-async does."""

DRAINING = f"{SECOND}-attempt-*-of-2.tmp"
DRAIN_FAILS = schedule([StorageError(Trigger(at("open_write", f"{DRAINING}/rank-1.pt", 1, role="thread")))])

OF_THEIR_OWN: dict[str, Schedule] = {
    "canary-drain-error-lost": DRAIN_FAILS,
    "canary-early-marker": schedule([cut("open_write", f"{SECOND}/rank-1.pt", 1)]),
    "canary-highest": schedule([cut("open_write", f"{SECOND}/rank-1.pt", 1)]),
    "canary-in-place": schedule([cut("write", "rank-0.pt", incarnation=2, nth=1)]),
    "canary-litter": schedule([cut("open_read", f"{SECOND}.attempt-1.tmp")]),
    "canary-mixed": schedule([cut("rename", "3.weight.pt.tmp", incarnation=2)]),
    "canary-own-newest": schedule([cut("rename", f"rank-1/{SECOND}.tmp", 1, incarnation=1)]),
    "canary-pointer-in-place": schedule([cut("write", "latest", incarnation=2)]),
    "canary-stale-shards": schedule([cut("open_write", f"{SECOND}/complete")], [WorldSize(Topology((1, 1)))]),
    "canary-torn": schedule([cut("open_write", f"{SECOND}/3.weight.pt")]),
    "canary-trusting": schedule([RESTART], [BitFlip(f"shared:{THIRD}/state.pt", 5000)]),
}
"""Canaries with operations of their own, or faults that a correct target without their claim can't be held to."""

ALL = LIKE_ATOMIC | LIKE_ASYNC | OF_THEIR_OWN
