"""What shows each reported case: a scenario with the broken shape, the faults, the invariant that names it, the right shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.hold_until import HoldUntil
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.mtimes import Mtimes
from chaosckpt.faults.stale_save import StaleSave
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address, Role, When, step_address
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology
from chaosckpt.scenario import load as scenarios

DIRECTORY = Path(__file__).parents[2] / "scenarios" / "cases"
SLOW_MS = 60
"""Longer than training takes to its next save, under the gate."""


class Case(NamedTuple):
    """`attempts` are the faults of each attempt; `right` is a scenario beside the broken one, or a target for it.

    `also`: what else the same bug comes out as, where saves race within one process, or where an audit comes first.

    `waits`: the broken shape hangs or runs into a limit, so that what is waited for is kept short.

    `right_attempts`: the same faults, at the operations of the right shape, where these have other names.
    """

    broken: str
    attempts: Sequence[Sequence[Fault]]
    invariant: str
    right: str
    right_attempts: Sequence[Sequence[Fault]] | None = None
    also: tuple[str, ...] = ()
    waits: bool = False

    @property
    def schedule(self) -> Schedule:
        """The faults for the broken shape."""
        return schedule_of(self.attempts)

    @property
    def right_schedule(self) -> Schedule:
        """The faults for the right shape."""
        return schedule_of(self.attempts if self.right_attempts is None else self.right_attempts)

    @property
    def scenario(self) -> Scenario:
        """The broken shape."""
        return scenarios.read(DIRECTORY / f"{self.broken}.toml")

    @property
    def right_scenario(self) -> Scenario:
        """The right shape: its own scenario, or the broken one's with another target."""
        if (DIRECTORY / f"{self.right}.toml").exists():
            return scenarios.read(DIRECTORY / f"{self.right}.toml")
        broken = self.scenario
        target = msgspec.structs.replace(broken.target, use=self.right, options={})
        return msgspec.structs.replace(broken, target=target)


def schedule_of(attempts: Sequence[Sequence[Fault]]) -> Schedule:
    """The faults of each attempt as a schedule."""
    return Schedule(tuple(AttemptPlan(tuple(faults)) for faults in attempts))


def at(
    path: str,
    op: str = "open_write",
    when: When = "before",
    *,
    rank: int = 0,
    role: Role = "main",
    incarnation: int | None = None,
) -> Trigger:
    """The first such operation on a path of the shared tier; a file's incarnation is 1 if not given, a directory's 0."""
    if incarnation is None:
        incarnation = 1 if op in ("open_write", "write") or "." in path.rpartition("/")[2] else 0
    return Trigger(Address(rank, role, op, f"shared:{path}", incarnation, 0), when)


def killed(*triggers: Trigger, steps: tuple[tuple[int, int], ...] = ()) -> list[Fault]:
    """The whole job is killed there."""
    return [Cut(triggers, steps=steps)]


RESTART: list[list[Fault]] = [[]]
"""The job ends; the closing attempt recovers."""
OTHER_RANK = at("step-000004/rank-1.pt", rank=1)
OTHER_SHARD = at("step-000004/__1_0.distcp", rank=1)
SAVER = at("step-000004/__0_0.distcp", role="thread")
IN_TEMPORARY = at("step-000004.tmp/rank-1.pt", rank=1)
ATOMIC_KILLED = [killed(IN_TEMPORARY)]
BAD_BLOCK = StorageError(at("step-000004/__0_0.distcp", "write", role="thread"), "EIO")
SLOW_THREAD = Latency(at("step-000002/__0_0.distcp", role="thread"), SLOW_MS)
CROSSED = [
    Latency(at("step-000001", "mkdir", role="thread"), SLOW_MS),
    Latency(Trigger(step_address(1, 2)), SLOW_MS),
]
"""On rank 0 training comes to its collective before the saver does, on rank 1 it is the other way round."""
OVERLAPPED = [
    HoldUntil(Trigger(step_address(1, 2)), at("step-000001/__0_0.distcp", when="after", role="thread")),
    Latency(at("step-000001/__0_0.distcp", "close", role="thread"), 8 * SLOW_MS),
    *killed(
        at("step-000003", "stat", incarnation=0),
        at("step-000002/__1_0.distcp", rank=1, role="thread"),
    ),
]
"""Save 2 begins once save 1 is in its shard, and while it still is, and doesn't get far; save 1 is acknowledged."""

CASES = [
    Case("c01", [[BAD_BLOCK]], "durable-acknowledgement", "c01-right"),
    Case("c02", [killed(OTHER_RANK)], "newest-complete", "torch-save-atomic", ATOMIC_KILLED),
    Case("c03", [killed(OTHER_RANK)], "newest-complete", "c03-right"),
    Case("c04", [killed(OTHER_SHARD)], "newest-complete", "dcp"),
    Case("c05", [killed(OTHER_SHARD)], "progress", "dcp"),
    Case(
        "c06",
        [killed(at("rank-1.pt", rank=1, incarnation=2, when="after"))],
        "newest-complete",
        "torch-save-atomic",
        ATOMIC_KILLED,
    ),
    Case("c07", [killed(at("step-000004/3.bias.pt"))], "complete-only", "torch-save-atomic", ATOMIC_KILLED),
    Case(
        "c08",
        [killed(at("step-000004/model.tmp", "rename", "after"))],
        "full-state",
        "torch-save-atomic",
        [killed(at("step-000004.tmp", "rename", "after", incarnation=0))],
    ),
    Case(
        "c10",
        [killed(at("step-000004/complete")), [WorldSize(Topology((1,)))]],
        "complete-only",
        "dcp",
        [killed(at("step-000004/.metadata.tmp")), [WorldSize(Topology((1,)))]],
    ),
    Case(
        "c11",
        [killed(at("latest.new", "rename", "after", incarnation=2))],
        "newest-complete",
        "torch-save-atomic",
        ATOMIC_KILLED,
    ),
    Case("c12", [killed(at("step-000004.tmp", "rename", incarnation=0))], "newest-complete", "torch-save-atomic"),
    Case("c13", [killed(SAVER)], "newest-complete", "c13-right"),
    Case("c14", [[], [Mtimes()]], "newest-complete", "torch-save-atomic"),
    Case("c15", [[StaleSave(("shared:step-1000004",))]], "newest-complete", "c15-right"),
    Case("c16", [killed(at("step-000012.tmp", "mkdir", incarnation=0))], "newest-complete", "c16-right"),
    Case("c17", [[SLOW_THREAD, *killed(at("step-000004", "mkdir", role="thread"))]], "complete-only", "dcp-async"),
    Case("c18", [CROSSED], "progress", "dcp-async", waits=True),
    Case("c20", [killed(SAVER)], "newest-complete", "dcp-async"),
    Case("c21", [killed(SAVER)], "newest-complete", "dcp-async"),
    # The later save's metadata may land in the earlier one's directory, and then vouches for a mix.
    Case("c22", [OVERLAPPED], "newest-complete", "c22-right", also=("complete-only",)),
    Case(
        "c23",
        [
            [
                Latency(at("step-000001/__0_0.distcp", role="thread"), SLOW_MS),
                *killed(at("step-000002/.metadata.tmp", "rename", role="thread"), steps=((0, 3),)),
            ]
        ],
        "complete-only",
        "c23-right",
    ),
    # Run to its end and restarted without a fault, each save is audited, too: that one can't be loaded is as true.
    Case("c24", RESTART, "newest-complete", "dcp", also=("durable-acknowledgement",)),
    Case("c25", [killed(IN_TEMPORARY)], "clear-failure", "torch-save-atomic", waits=True),
    Case("c26", [killed(IN_TEMPORARY)], "newest-complete", "torch-save-atomic"),
    Case("c27", RESTART, "full-state", "dcp"),
    Case("c28", RESTART, "full-state", "torch-save-atomic"),
    Case("c29", [[], [WorldSize(Topology((1,)))]], "full-state", "torch-save-atomic"),
    Case("c30", [[], [WorldSize(Topology((2,)))]], "newest-complete", "dcp"),
    Case("c32", RESTART, "complete-only", "torch-save-atomic"),
    Case(
        "c33", [killed(at("latest/__1_0.distcp", rank=1, incarnation=2))], "complete-only", "dcp", [killed(OTHER_SHARD)]
    ),
]
