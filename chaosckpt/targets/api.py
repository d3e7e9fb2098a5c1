"""The protocol between the harness and a checkpointer under test: what a target is given, and what it answers."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from chaosckpt.errors import PluginError, UsageError
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import Strategy

if TYPE_CHECKING:
    from chaosckpt.training.state import TrainState

Level = Literal["local", "shared"]
Option = str | int | float | bool
StageName = Literal["snapshot", "persist", "commit", "retire", "discover", "load"]
Value = TypeVar("Value")


class Intent(enum.Enum):
    """Why a job was launched. START: nothing was acknowledged before. RESUME: something was; empty hands are wrong."""

    START = "start"
    RESUME = "resume"


class CheckpointError(Exception):
    """A save or a recovery can't be done. Its text names the path it was about; every rank raises it alike."""


class Ack(msgspec.Struct, frozen=True):
    """A save is finished as far as `level`, the tier that now holds it. `then` is the slower tier still to come."""

    level: Level
    then: Pending | None = None


@runtime_checkable
class Pending(Protocol):
    """A save under way. One that also has `done() -> bool` tells, without waiting, whether it is finished."""

    def wait(self) -> Ack:
        """Return once the save is finished, or raise what went wrong. Ranks call it at the same point of training."""
        ...


class Done(msgspec.Struct, frozen=True):
    """The Pending of a save that was finished when `save` returned."""

    level: Level = "shared"

    def wait(self) -> Ack:
        """Return at once."""
        return Ack(self.level)


class Chosen(msgspec.Struct, frozen=True):
    """Recovery loaded the checkpoint of this step."""

    step: int


class Nothing(msgspec.Struct, frozen=True):
    """Recovery found nothing to load, and training starts at step 0. Allowed under START only."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a target is told about its rank.

    `node` and `ranks_on_node` count nodes and this node's ranks, `local_rank` is this rank's number on its node.
    `shared` is a directory that all ranks see, `local` one that this node's ranks see and that dies with the node; both
    exist. `attempt` counts the launches of the job: with the step, it names one save. `options` come from the
    scenario's `[target.options]`. `mark` tells the harness that a stage begins.
    """

    rank: int
    world_size: int
    node: int
    local_rank: int
    ranks_on_node: int
    shared: Path
    local: Path
    attempt: int
    options: Mapping[str, Option]
    mark: Callable[[str], None]


class Target:
    """Base class of checkpointers under test. A subclass has to define `save` and `recover`; all else has a default.

    Class attributes are what a target claims: `guarantees` it keeps, storage `tiers` it uses, `strategies` it can save,
    `nonces` (regular expressions for the parts of its file names that differ from run to run, beyond those that two
    golden runs tell), `options` it knows, with their defaults.
    `keeps_rng`: ranks that exist before and after a world-size change get their own random streams back.
    `outstanding`: how many saves it lets be under way at once, the newest included. `abandoned`: how many checkpoints'
    worth of bytes crashes may leave behind for good. A subclass that defines `__init__(self, context)` need not call
    this one's. One target object lives as long as its rank's process.
    """

    name: ClassVar[str] = ""
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})
    tiers: ClassVar[frozenset[Level]] = frozenset({"shared"})
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp", "fsdp2"})
    nonces: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}
    keeps_rng: ClassVar[bool] = False
    outstanding: ClassVar[int] = 1
    abandoned: ClassVar[int] = 1

    context: Context

    def __new__(cls, context: Context) -> Target:
        unknown = sorted(set(context.options) - set(cls.options))
        if unknown:
            known = ", ".join(sorted(cls.options)) or "none"
            raise UsageError(
                f"target.options.{unknown[0]} is not an option of {cls.name or cls.__name__}; its options: {known}"
            )
        self = super().__new__(cls)
        self.context = context
        return self

    def __init__(self, context: Context) -> None:
        pass

    def save(self, state: TrainState, step: int) -> Pending:
        """Begin to save the state after `step` steps. Every rank calls it, at the same step."""
        raise PluginError(f"target {type(self).__name__} defines no save(self, state, step)")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest complete checkpoint into `state`, all ranks the same one, and say which.

        Called once, before the first step. With nothing to load: under START return Nothing, under RESUME raise, on all
        ranks alike, an error that names what was looked for.
        """
        raise PluginError(f"target {type(self).__name__} defines no recover(self, state, intent)")

    def retained(self) -> Sequence[int] | None:
        """The steps of the complete checkpoints there are now, ascending, the same on every rank; only looks.

        None, the default: this target offers no list, so that a checkpoint can be tested only while it is the newest, by a
        recovery. Together with `load` it lets the harness audit whatever was acknowledged.
        """
        return None

    def load(self, state: TrainState, step: int) -> None:
        """Load one retained checkpoint into `state`, on every rank alike; raises what is wrong with it. Changes no file."""
        raise PluginError(
            f"target {type(self).__name__} lists retained checkpoints but defines no load(self, state, step)"
        )

    def close(self) -> None:
        """Finish outstanding saves; called by every rank before an orderly exit."""

    @property
    def shared(self) -> Path:
        """The directory that every rank sees."""
        return self.context.shared

    @property
    def local(self) -> Path:
        """This node's own directory, lost with the node."""
        return self.context.local

    @property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return self.context.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.context.world_size

    def option(self, name: str) -> Option:
        """The scenario's value of an option, or its default. Raises UsageError when it has not the default's type."""
        default = self.options[name]
        value = self.context.options.get(name, default)
        if type(value) is not type(default):
            expected = type(default).__name__
            raise UsageError(
                f"target.options.{name} is {value!r}; it must be a value of type {expected}, as {default!r}"
            )
        return value

    def stage(self, name: StageName) -> None:
        """Mark that this rank now begins a stage of its save or recovery."""
        self.context.mark(name)

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self.gather(None)

    def gather(self, value: Value) -> list[Value]:
        """Every rank's value, in the order of ranks, on every rank."""
        if self.world_size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Value | None] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values  # type: ignore[return-value]

    def broadcast(self, value: Value) -> Value:
        """Rank 0's value, on every rank; the other ranks' is ignored."""
        return self.gather(value)[0]

    def together(self, doing: str, action: Callable[[], Value]) -> Value:
        """Run `action` on every rank, wait for all, and return this rank's result.

        An error on any rank becomes a CheckpointError on every rank, with `doing` (which should name a path) and the
        errors in its text: so no rank is left waiting in a collective for one that has failed, and all fail alike.
        """
        value, error = _attempt(action)
        self._raise_any(doing, self.gather(_sentence(error)), error)
        return value  # type: ignore[return-value]

    def on_rank_zero(self, doing: str, action: Callable[[], Value]) -> Value:
        """Run `action` on rank 0 only, and return its result on every rank. Errors are shared as in `together`."""
        value, error = _attempt(action) if self.rank == 0 else (None, None)
        value, text = self.broadcast((value, _sentence(error)))
        self._raise_any(doing, [text], error)
        return value  # type: ignore[return-value]

    def _raise_any(self, doing: str, errors: list[str | None], own: Exception | None) -> None:
        failed = [f"rank {rank}: {text}" for rank, text in enumerate(errors) if text is not None]
        if failed:
            raise CheckpointError(f"failed {doing}: " + "; ".join(failed)) from own

    def nothing(self, intent: Intent, looked_for: str) -> Nothing:
        """The answer when nothing can be loaded: Nothing under START, under RESUME an error naming `looked_for`."""
        if intent is Intent.START:
            return Nothing()
        raise CheckpointError(f"there is no complete checkpoint to resume from: looked for {looked_for}")

    def fsync_directory(self, path: Path) -> None:
        """Make the directory's entries durable: else a file created or renamed in it may be gone after a power loss."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _attempt(action: Callable[[], Value]) -> tuple[Value | None, Exception | None]:
    try:
        return action(), None
    except Exception as error:  # Whatever it was, the peers have to learn of it before it is raised.
        return None, error


def _sentence(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"
