"""Faults as values: what happens and where. What a kind does is written in its own file under chaosckpt/faults/."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, Protocol, Self

import msgspec

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.mutation import Mutation
from chaosckpt.model.operation import Address, Operation, When, tier_of
from chaosckpt.model.topology import Topology


class Hold(msgspec.Struct, frozen=True):
    """Leave the call unanswered: with nothing done, with the first `torn_bytes` bytes written, or with all of it done.

    The calling thread stays in the call until it is resumed or killed. Torn on anything but a write counts as before. With `again`,
    an operation held before it happens is decided once more when it is resumed.
    """

    when: When = "before"
    torn_bytes: int = 0
    again: bool = False


class Errno(msgspec.Struct, frozen=True):
    """Perform nothing and fail with this error number (a `close` still gives up the descriptor, as the kernel's does)."""

    number: int


class Short(msgspec.Struct, frozen=True):
    """Write the first `length` bytes only and say so; on anything but a write the operation is performed in full."""

    length: int


class Hide(msgspec.Struct, frozen=True):
    """List a directory without the entries of these names (nonces decoded); any other operation is performed untouched."""

    names: tuple[str, ...]


Decision = Hold | Errno | Short | Hide | None
"""None performs the operation untouched."""


Ends = Literal["job", "rank", "perhaps", "nothing"]


class Trigger(msgspec.Struct, frozen=True, order=True):
    """The operation at which a fault is injected: before it, after it, or when `torn_bytes` of its data are written."""

    address: Address
    when: When = "before"
    torn_bytes: int = 0

    def __str__(self) -> str:
        when = f"after {self.torn_bytes} bytes of" if self.when == "torn" else self.when
        return f"{when} {self.address}"


class JobControl(Protocol):
    """What a fault may do to the running job, given to it by the trial runner. Every act is journalled as evidence."""

    topology: Topology
    failure_groups: Sequence[Sequence[int]]

    def await_rest(self) -> None:
        """Return when no rank can go further by itself; raises NotArrived where that can't be established."""

    def kill_job(self) -> None:
        """Stop every rank at once where it stands: no operation is performed any more."""

    def kill_rank(self, rank: int) -> None:
        """SIGKILL one rank's process tree; its peers live on."""

    def kill_process(self) -> None:
        """SIGKILL the one process, of several of its rank, whose operation this fault holds; the rank lives on."""

    def stop_rank(self, rank: int) -> None:
        """SIGSTOP one rank's process tree; its peers live on. When they have ended it is killed, by this fault."""

    def await_survivors(self) -> None:
        """Return when every rank that wasn't stopped has ended, or the survivors' grace is over."""

    def await_peers(self, rank: int) -> None:
        """Return when every rank but this one has ended, or the survivors' grace is over."""

    def continue_rank(self, rank: int) -> None:
        """SIGCONT a stopped rank; what this fault held goes on."""

    def terminate(self, ranks: Sequence[int]) -> None:
        """Send SIGTERM to these ranks."""

    def lose_node(self, node: int) -> None:
        """The node dies: its processes by SIGKILL, its node-local storage with them; a spare takes its place at the restart."""

    def activate(self, on: bool = True) -> None:
        """Set this fault's `Memory.took_effect` on every node: from here on it is in force everywhere (or nowhere)."""

    def resume(self) -> None:
        """Let every operation that this fault held go on."""

    def run_for(self, seconds: float) -> None:
        """Let the job run until it has ended, or at most this long."""

    def drop_storage(self, tier: str, node: int | None = None) -> int:
        """Delete what a tier holds (of one node, when node-local). Returns the number of files deleted."""

    def mutate(self, tier: str, node: int | None, mutation: Mutation) -> str | None:
        """Change files of a tier (of one node, when node-local) between attempts. Returns what was done, in words; None for nothing."""


class Memory(msgspec.Struct):
    """What a fault remembers within one attempt on one node while it decides about operations."""

    counters: dict[str, int] = {}
    took_effect: bool = False


class Fault(msgspec.Struct, frozen=True, tag_field="kind", tag="none"):
    """Base of all faults. A kind is a frozen subclass with a `tag`; override what applies and leave the rest.

    The life of a fault in its attempt: `topology` and `prepare` before the ranks start; `decide` at every operation, on the
    node of the rank; `inject` in the trial runner, once each trigger of `holds` is reached.
    """

    ends: ClassVar[Ends] = "nothing"
    """What stops by this fault: the whole job, some rank (the job then ends by itself), perhaps the job (an error which the
    target may survive), or nothing. A schedule has at most one fault that ends anything for sure in an attempt, and nothing after it;
    before it may stand one that perhaps does."""
    lingers: ClassVar[bool] = False
    """Whether ranks go on for a while after it took effect, so that what it held may yet happen."""
    between: ClassVar[bool] = False
    """Whether it is injected between two attempts (`topology`, `prepare`), before any rank runs."""
    drops: ClassVar[str | None] = None
    """The storage tier whose content is gone after it, on one node at least."""
    blurs: ClassVar[bool] = False
    """Whether recovery may choose something else after it (or by it) than the census expects, so that nothing more is aimed."""
    weight: ClassVar[float] = 1.0
    """How often this kind is drawn beside the others, where the scenario doesn't say; 0: only where it names the kind."""
    retries: ClassVar[int] = 0
    """How often more the ranks of its attempt try a save that raised."""
    needs: ClassVar[frozenset[Guarantee]] = frozenset()
    """Guarantees under which a checkpoint must outlive this fault; a target without them may lose it, but never lie."""

    @classmethod
    def strategy(cls, context: Any) -> Any:
        """A Hypothesis strategy for faults of this kind (`context` is a faults.context.FaultContext); None where there are none."""
        return None

    @classmethod
    def singles(cls, context: Any) -> Iterable[Fault]:
        """Every fault of this kind worth a trial of its own in `context`, in a fixed order. Few kinds have any."""
        return ()

    def holds(self) -> tuple[Trigger, ...]:
        """Operations to be held at the gate; `inject` is called when all of them are."""
        return ()

    def triggers(self) -> tuple[Trigger, ...]:
        """The operations at which it is injected, held or not; empty where it names none."""
        return self.holds()

    def accepts(self, op: str) -> bool:
        """Whether it can be injected into an operation of this name."""
        return True

    def moved(self, at: Sequence[Trigger]) -> Self:
        """The same fault at these operations (one or more)."""
        return self

    def simpler(self) -> Iterable[Self]:
        """The same fault with one field nearer its minimum, simplest first; its triggers stay. For shrinking."""
        return ()

    def topology(self, current: Topology) -> Topology:
        """The topology of the attempt that starts with this fault."""
        return current

    def prepare(self, job: JobControl) -> str | None:
        """Inject it between two attempts. Returns the evidence, or None where there was nothing to do it to."""
        return None

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        """Answer one operation at the gate: None lets it pass. Set `memory.took_effect` when the fault took effect here."""
        return None

    def inject(self, job: JobControl) -> None:
        """Inject it now: every trigger of `holds` is held."""

    def describe(self) -> str:
        """One phrase for people, as in "rank 1 killed by SIGKILL before rank 1's fourth write to step_4/__1_0.distcp"."""
        return type(self).__name__

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    def to_builtins(self) -> Any:
        return msgspec.to_builtins(self)


class PointFault(Fault, frozen=True):
    """Base of the faults that are injected at one operation."""

    at: Trigger

    def triggers(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def moved(self, at: Sequence[Trigger]) -> Self:
        return msgspec.structs.replace(self, at=at[0])


class TierFault(PointFault, frozen=True):
    """Base of the faults whose trigger is held while every node learns of them; they are injected into its tier."""

    triggered_by: ClassVar[frozenset[str]] = frozenset()
    """The names of the operations that it can be triggered by."""

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    @property
    def tier(self) -> str:
        """The storage tier of the trigger."""
        return tier_of(self.at.address.path)

    def concerns(self, operation: Operation) -> bool:
        """Whether an operation is on the fault's tier."""
        return operation.address.path.startswith(self.tier + ":")

    @classmethod
    def strategy(cls, context: Any) -> Any:
        """Before any operation of `triggered_by`."""

        def accepted(point: Any) -> bool:
            return bool(point.address.op in cls.triggered_by)

        if not context.can_inject(accepted):
            return None
        return context.points(accepted).map(lambda i: cls(Trigger(context.golden.points[i].address)))

    def accepts(self, op: str) -> bool:
        return op in self.triggered_by
