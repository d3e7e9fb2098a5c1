"""Scenarios: what is tested, table by table, as read from a TOML file in scenarios/ or from a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.topology import Topology

Strategy = Literal["ddp", "fsdp2"]
AtEnd = Literal["await", "close", "exit"]

MOST_STEPS = 100_000
_AT_LEAST = {
    "steps": 1,
    "save_every": 1,
    "hidden": 1,
    "layers": 1,
    "batch": 1,
    "dataset": 1,
    "seed": 0,
    "outstanding": 1,
    "retries": 0,
}


class WorkloadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained. None of it depends on the number of ranks, so that a run can go on with another number.

    The model is a multilayer perceptron of `layers` square layers of width `hidden` and a small head: about `4 * layers
    * hidden**2` bytes of parameters, and three times that in a checkpoint, because AdamW keeps two moments
    (hidden=4096, layers=2 is 134 MB of parameters and 403 MB of checkpoint). `batch` is the number of samples of one
    *global* step, which the ranks share out among themselves, out of `dataset` samples in all. A save follows every
    `save_every`-th step.

    Raises ValueError, with the offending value, when a setting can't be.
    """

    strategy: Strategy = "ddp"
    steps: int = 6
    save_every: int = 2
    hidden: int = 16
    layers: int = 2
    batch: int = 4
    dataset: int = 64
    dropout: float = 0.1
    seed: int = 0
    learning_rate: float = 1e-2
    outstanding: int = 1
    at_end: AtEnd = "await"
    destroys_group: bool = False
    retries: int = 0

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"workload.{name} is {value}; it must be {least} or more")
        if self.steps > MOST_STEPS:
            raise ValueError(
                f"workload.steps is {self.steps}; it must be {MOST_STEPS} or less, since every trial trains them all"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"workload.dropout is {self.dropout}; it must be at least 0 and below 1")
        if not 0.0 < self.learning_rate < float("inf"):
            raise ValueError(f"workload.learning_rate is {self.learning_rate}; it must be above 0")
        if self.batch > self.dataset:
            raise ValueError(
                f"workload.batch is {self.batch}, more than the {self.dataset} samples of workload.dataset; "
                "one step may not see a sample twice, so raise dataset or lower batch"
            )

    def saves_after(self, step: int) -> bool:
        """Whether a save follows this step; one follows the last."""
        return step % self.save_every == 0 or step == self.steps

    @property
    def save_steps(self) -> tuple[int, ...]:
        """The steps that are saved, in order."""
        return tuple(filter(self.saves_after, range(1, self.steps + 1)))


OUT = "{out}"
RANKS = "{nproc}"
_PER_NODE = re.compile(r"--nproc[-_]per[-_]node(?:=(.*))?$")


def ranks_told(words: Sequence[str]) -> int:
    """The number of ranks that a command's own words tell, by torchrun's option; 1 where they tell none."""
    for place, word in enumerate(words):
        found = _PER_NODE.match(word)
        if found is not None:
            number = found[1] or "".join(words[place + 1 : place + 2])
            if number.isdecimal() and int(number) > 0:
                return int(number)
    return 1


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is launched, and by which signs its checkpoints, recoveries and results are known.

    In `argv`, `checkpoints` and `result`, `{out}` stands for a directory that the harness makes, empties and removes; in `argv`,
    `{nproc}` stands for the number of ranks.
    """

    argv: tuple[str, ...]
    checkpoints: str | None = None
    """A glob below `{out}` with one `*` in place of the step's number, such as `{out}/ckpt-*`."""
    resumed: str | None = None
    """A regular expression for a line that says which step was resumed from; its first group is the number."""
    saved: str | None = None
    """A regular expression for a line that says that a step was saved; its first group is the number."""
    result: str | None = None
    """A file that is to be the same at the end as after an uninterrupted run."""
    result_command: str | None = None
    """A command that prints one number at the end, in place of a file."""
    tolerance: float = 0.0
    """By how much that number may differ."""
    resume_argv: tuple[str, ...] = ()
    """What is added to the command once something was saved."""
    track: tuple[str, ...] = ()
    """Further directories whose operations are traced. They are never emptied."""
    cold: bool = False
    """Never run in a fork of a warm interpreter."""
    no_observe: bool = False
    """Don't look at what its ranks train."""
    allow: bool = False
    """Let it change files anywhere."""
    allow_network: bool = False
    """Let it connect to other machines."""
    directory: str = "."
    """Its current directory."""

    def words(self, out: str, ranks: int, *, resuming: bool = False) -> tuple[str, ...]:
        """The command line of one launch."""
        words = tuple(word.replace(OUT, out).replace(RANKS, str(ranks)) for word in self.argv)
        return (*words, *self.added(out, ranks)) if resuming else words

    def added(self, out: str, ranks: int) -> tuple[str, ...]:
        """What is added to it for a launch that finds something saved."""
        return tuple(word.replace(OUT, out).replace(RANKS, str(ranks)) for word in self.resume_argv)


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


DEFAULT_SCENARIO = "default scenario"
"""How the description of a scenario ends that was made for a target named alone."""


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
