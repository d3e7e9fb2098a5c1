"""What a node and its ranks are told to run: frozen values, sent as MessagePack."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from chaosckpt.engine.wire.programs import AnyProgram, TrainingProgram
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.journal import (
    Intent,
)
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import WorkloadSettings


class CommandNodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node runs an unmodified command, beside what differs from attempt to attempt."""

    environment: dict[str, str]
    directory: str
    """The command's current directory."""
    warm: bool = True
    """Whether it may run in a fork of a warm interpreter; a command that is no plain Python script never does."""
    tracked: dict[str, str] = {}
    """Further storage tiers, by name: directories of the user's that are traced, but never emptied."""
    writable: tuple[str, ...] | None = ()
    """Directories outside the tiers where it may change files; None: anywhere."""
    network: bool = False
    """Whether it may connect to other machines."""
    own_network: bool = False
    """Whether the node makes a network of its own for it (chaosckpt/engine/node/network.py)."""
    observed: str = ""
    """The directory in which observers leave what ranks train; empty: nothing is observed."""
    checkpoints: str = ""
    """The glob of its checkpoints (chaosckpt/commands/naming.py)."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a node needs to know before its first attempt: how ranks are made, and which code they run."""

    target: str
    options: dict[str, str | int | float | bool]
    workload: WorkloadSettings
    launch: Literal["fork", "exec"] = "fork"
    gate: bool = True
    python: str = ""
    """The interpreter of the ranks; empty: this one."""
    environment: dict[str, str] | None = None
    """All of the environment that ranks are given, but for what the launcher itself sets; None: that of the node."""
    temporary: str = ""
    """The temporary directory of the ranks; empty: the node's own directory."""
    import_path: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Modules that a rehearsal on an equal node met: imported instead of rehearsing again."""
    nonces: tuple[str, ...] = ()
    """Expressions for the parts of file names that golden runs saw drawn anew in each run, beside those that the target declares."""
    directory: str = ""
    """Where this node keeps logs: outside of every tracked root."""
    command: CommandNodeSettings | None = None
    """Set for a node that runs an unmodified command instead of ranks with a target."""


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a target says of itself, learnt by the fork server, so that the harness never imports torch."""

    name: str
    guarantees: tuple[Guarantee, ...]
    nonces: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ("ddp", "fsdp2")
    keeps_rng: bool = False
    outstanding: Annotated[int, msgspec.Meta(ge=1)] = 1
    abandoned: Annotated[int, msgspec.Meta(ge=0)] = 1


class Place(msgspec.Struct, frozen=True):
    """A rank of the attempt, the node of the topology that it stands on, and the directory of each storage tier there."""

    rank: int
    node: int
    local_rank: int
    tiers: dict[str, str]


class AttemptOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the job, for the ranks of one node process."""

    attempt: int
    intent: Intent
    world_size: int
    places: tuple[Place, ...]
    program: AnyProgram = TrainingProgram()
    """What its ranks run."""
    faults: tuple[Any, ...] = ()
    """The attempt's faults as builtins, in order; decoded with the plugins of the node."""
    address: str = "127.0.0.1"
    """The address of this node at which its ranks can be reached."""
    collective_timeout_seconds: float = 20.0
    retries: int = 0
    """How often more than the workload says a rank tries a save that raised."""
    record: Literal["nothing", "operations", "data"] = "nothing"
    step_rank: int | None = None
    """Hold every operation of this rank: it is single-stepped (chaosckpt/engine/golden/reach.py)."""
    hold_at: tuple[Address, ...] = ()
    """Hold these operations, too, until the runner lets them go."""
    hold_steps: dict[int, tuple[int, ...]] = {}
    """For each rank, the training steps before which its training thread reports (Stepping), because a fault holds it there."""


class RankOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank process is told before it runs its program."""

    settings: NodeSettings
    attempt: AttemptOrder
    place: Place
    launched_seconds: float = 0.0
    """When the node began to launch this rank, by the clock that all processes of a machine share (time.monotonic)."""


class Ready(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The fork server is warm. `threads` must be 1, else ranks have to be started by exec; `modules` are for the next one to import."""

    facts: TargetFacts
    modules: tuple[str, ...]
    threads: int


class Refused(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The fork server can't work with these settings. `usage` tells a mistake of the user from trouble of the harness."""

    why: str
    usage: bool


class Forked(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank was forked: the answer to a one-byte request that carried the rank's channel and its log."""

    pid: int


class Reaped(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank ended, with this wait status."""

    pid: int
    status: int


ForkServerMessage = Ready | Refused | Forked | Reaped
"""What a fork server tells its node."""
