"""What a trial runner asks of a node process: one request for each verb, each with the type of its reply.

A request travels in an envelope with a number, and the reply carries that number back. Both ends dispatch by type: the runner's stub
is chaosckpt/engine/runner/node_client.py, the node answers in chaosckpt/engine/node/server.py.
"""

from __future__ import annotations

import re
from typing import Generic, Literal, TypeVar, get_args

import msgspec

from chaosckpt.commands.launches import Executed
from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine.wire.orders import AttemptOrder, NodeSettings
from chaosckpt.engine.wire.reports import Cause, Labelled, Rendezvous
from chaosckpt.model.census import Pauses
from chaosckpt.model.mutation import Mutated, Mutation
from chaosckpt.model.observed import ObservedStep
from chaosckpt.model.operation import Address

T_co = TypeVar("T_co", covariant=True)


def _verb(name: str) -> str:
    """The tag of a request's class: `KillHolder` reads "kill holder", as errors say it."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


class Ask(msgspec.Struct, Generic[T_co], frozen=True, tag_field="verb", tag=_verb):
    """Base of every request; its parameter is the type of the reply."""


Socket = tuple[int, int, int, int, int, int]
"""(inode, state, receive queue, send queue, bytes acknowledged, bytes received) of a TCP socket."""


Waits = Literal["wait", "timed", "asleep", "polls", "busy", "running"]
"""How a thread was found: in a call that waits without a timeout ("wait", or held by the gate) or with one, in a sleep, polling sockets
with a short timeout, in another system call, or in none."""


class ThreadSeen(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One thread at one instant. `place` is call and stack of a timed wait or sleep: equal for a loop that came back to it."""

    tid: int
    cpu: int | None
    """Nanoseconds so far; None for a thread that polls sockets, whose only inputs are those."""
    waits: Waits
    place: str = ""


class Sample(msgspec.Struct, frozen=True):
    """What a node saw of its ranks at one instant."""

    threads: tuple[ThreadSeen, ...]
    sockets: tuple[Socket, ...]
    pending: bool
    """Whether some socket's queue held bytes."""
    operations: int
    """Performed so far by all ranks of the node, without questions that were asked and answered like this before."""
    caller: int
    """The thread of the last of them."""
    runner_awaited: bool = False
    """Whether a rank waits until the runner lets it go on: not quiescent, whatever its threads do."""


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a command's attempt left to be read beside its files."""

    printed: str = ""
    """The end of what it printed."""
    refused: tuple[str, ...] = ()
    """What the guard kept it from."""
    modules: tuple[str, ...] = ()
    """What it had imported, where that was asked."""
    told: tuple[str, ...] = ()
    """The lines that it wrote by the probe."""
    read: tuple[int, ...] = ()
    """The steps of whose files it opened some for reading."""
    observed: tuple[ObservedStep, ...] = ()
    """What its ranks trained, in each rank's order."""
    executed: tuple[Executed, ...] = ()
    """How its ranks were started, where that was asked."""


class Start(Ask[None], frozen=True):
    """Launch the ranks of one attempt."""

    order: AttemptOrder


class Meet(Ask[None], frozen=True):
    """Tell this node's ranks where the process group meets."""

    place: Rendezvous


class TakeSample(Ask[Sample], frozen=True):
    """See Node.sample."""


class DescribeThreads(Ask[list[str]], frozen=True):
    """See Node.describe."""

    threads: tuple[int, ...]


class GetPauses(Ask[Pauses], frozen=True):
    """See Node.pauses."""


class Freeze(Ask[None], frozen=True):
    """See Node.freeze."""


class Thaw(Ask[None], frozen=True):
    """See Node.thaw."""


class Proceed(Ask[None], frozen=True):
    """See Node.proceed."""

    rank: int


class Kill(Ask[bool], frozen=True):
    """See Node.kill."""

    ranks: tuple[int, ...] | None
    by: Cause


class KillHolder(Ask[None], frozen=True):
    """See Node.kill_holder."""

    fault: int


class Suspend(Ask[bool], frozen=True):
    """See Node.suspend."""

    rank: int


class Wake(Ask[bool], frozen=True):
    """See Node.wake."""

    rank: int


class Terminate(Ask[None], frozen=True):
    """See Node.terminate."""

    ranks: tuple[int, ...]
    by: Cause


class Activate(Ask[None], frozen=True):
    """See Node.activate."""

    fault: int
    on: bool


class Resume(Ask[None], frozen=True):
    """See Node.resume."""

    fault: int


class Reset(Ask[None], frozen=True):
    """See Node.reset."""

    directories: tuple[str, ...]


class Drop(Ask[int], frozen=True):
    """See Node.drop."""

    directory: str


class Keep(Ask[bool], frozen=True):
    """See Node.keep."""

    copies: dict[str, str]


class Exchange(Ask[None], frozen=True):
    """See Node.exchange."""

    copies: dict[str, str]


class Discard(Ask[None], frozen=True):
    """See Node.discard."""

    copies: tuple[str, ...]


class ListFiles(Ask[list[tuple[str, int]]], frozen=True):
    """See Node.inventory."""

    tiers: dict[str, str]


class Mutate(Ask[list[Mutated]], frozen=True):
    """See Node.mutate."""

    tier: str
    directory: str
    mutation: Mutation


class Lose(Ask[int], frozen=True):
    """See Node.lose."""

    directory: str


class GetRecords(Ask[list[list[Labelled]]], frozen=True):
    """See Node.records."""


class GetCounts(Ask[dict[int, int]], frozen=True):
    """See Node.counts."""


class GetLatest(Ask[dict[int, list[Address]]], frozen=True):
    """See Node.latest."""


class Use(Ask[None], frozen=True):
    """See Node.use."""

    settings: NodeSettings


class Decode(Ask[None], frozen=True):
    """See Node.decode."""

    patterns: tuple[str, ...]


class GetOutput(Ask[CommandOutput], frozen=True):
    """See Node.output."""


class GetManifest(Ask[list[FileSeen]], frozen=True):
    """See Node.manifest."""

    tier: str
    directory: str


Request = (
    Start | Meet | TakeSample | DescribeThreads | GetPauses | Freeze | Thaw | Proceed | Kill | KillHolder | Suspend | Wake | Terminate
    | Activate | Resume | Reset | Drop | Keep | Exchange | Discard | ListFiles | Mutate | Lose | GetRecords | GetCounts | GetLatest
    | Use | Decode | GetOutput | GetManifest
)  # fmt: skip


class Envelope(msgspec.Struct, frozen=True):
    """A request and the number by which its reply is known."""

    number: int
    request: Request


class Reply(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The answer to the request of that number: a value, still encoded, or an error sentence."""

    number: int
    value: msgspec.Raw = msgspec.Raw(msgspec.msgpack.encode(None))
    error: str = ""


def verb_of(request: Ask[object]) -> str:
    """The request in words, for an error."""
    return str(request.__struct_config__.tag)


_REPLIES = {kind: msgspec.msgpack.Decoder(get_args(kind.__orig_bases__[0])[0]) for kind in get_args(Request)}


def reply_to(request: Ask[T_co], value: msgspec.Raw) -> T_co:
    """The decoded reply to this request."""
    return _REPLIES[type(request)].decode(value)  # type: ignore[no-any-return]
