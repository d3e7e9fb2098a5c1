"""Scenarios: what is tested, as read from a TOML file in scenarios/."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from chaosckpt.model.command import CommandSettings
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.settings import WorkloadSettings
from chaosckpt.model.topology import Topology

Scalar = str | int | float | bool


class TargetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which checkpointer is tested, with the options that it is given."""

    use: str
    """The name of a registered target, or `path/to/file.py:Class`."""
    options: dict[str, Scalar] = {}
    guarantees: tuple[Guarantee, ...] | None = None
    """What the target is held to, instead of what it claims by itself."""


class TopologySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of ranks on each node. The first is the main one; a world-size change moves among them."""

    ranks: tuple[tuple[int, ...], ...] = ((1, 1),)
    failure_groups: tuple[tuple[int, ...], ...] = ()
    """Nodes that die together. Default: every node by itself."""

    @property
    def topologies(self) -> tuple[Topology, ...]:
        return tuple(Topology(ranks) for ranks in self.ranks)

    @property
    def nodes(self) -> int:
        """How many nodes the largest topology needs."""
        return max(len(ranks) for ranks in self.ranks)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        named = {node for group in self.failure_groups for node in group}
        return self.failure_groups + tuple((node,) for node in range(self.nodes) if node not in named)


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the storage tiers live. Everything below is made, marked and removed by the harness."""

    shared: str | None = None
    """A directory that every node sees, such as a parallel file system. Default: the machine's temporary directory."""
    local: str | None = None
    """A directory on each node's own disk. Default: the node's temporary directory."""


class FaultSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which kinds of fault are drawn, how often, and how many at once."""

    kinds: dict[str, float] = {}
    """Weight of each kind; a kind that isn't named is not drawn. Empty: every registered kind at its own weight."""
    max_attempts: int = 3
    """Attempts with faults in one trial, at most."""
    max_per_attempt: int = 2

    def __post_init__(self) -> None:
        for kind, weight in self.kinds.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"faults.kinds.{kind} = {weight} must be a number from 0 upwards")
        if not 1 <= self.max_attempts <= 8:
            raise ValueError(f"faults.max_attempts = {self.max_attempts} must lie between 1 and 8")
        if not 1 <= self.max_per_attempt <= 4:
            raise ValueError(f"faults.max_per_attempt = {self.max_per_attempt} must lie between 1 and 4")


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How ranks are launched and observed."""

    launch: Literal["fork", "exec"] = "fork"
    gate: Literal["auto", "seccomp", "none"] = "auto"
    fresh_start: Literal["refused", "allowed"] = "refused"
    """Whether a job that is told to resume may begin again at step 0 when nothing can be loaded (all ranks alike)."""


class DrillSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the restart test asks beyond a restart in a fresh allocation and a later save that is interrupted."""

    restore_ranks: tuple[tuple[int, ...], ...] = ()
    """Topologies in which what the first one saved is restored, too: one world-size change each."""
    restore_python: str = ""
    """Another interpreter, with its own dependencies, under which it is restored, too. Empty: not asked for."""
    environment: tuple[str, ...] = ()
    """Environment variables that a fresh allocation is given; of others it knows nothing."""
    interruptions: int = 6
    """At how many points of the later save the job is killed."""
    tolerance: float = 0.0
    """By how much a loss after the restart may differ from the golden trajectory's; 0: not by a bit."""
    tolerance_reason: str = ""
    """Why a difference is to be expected; required beside a tolerance."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is tested: target, workload, topologies, storage tiers, fault mix and guarantees."""

    name: str
    description: str = ""
    target: TargetSettings = TargetSettings(use="")
    command: CommandSettings | None = None
    """An unmodified command in place of a target."""
    workload: WorkloadSettings = WorkloadSettings()
    topology: TopologySettings = TopologySettings()
    storage: StorageSettings = StorageSettings()
    faults: FaultSettings = FaultSettings()
    run: RunSettings = RunSettings()
    drill: DrillSettings = DrillSettings()
