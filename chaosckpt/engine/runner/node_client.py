"""The runner's end of a node process, and the node process on this machine."""

from __future__ import annotations

import itertools
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

import msgspec

from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine.wire import requests as r
from chaosckpt.engine.wire.channel import Channel, pair
from chaosckpt.engine.wire.orders import AttemptOrder, NodeSettings, Ready, Refused, TargetFacts
from chaosckpt.engine.wire.reports import Cause, Labelled, Push, Rendezvous, Trouble
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.model.census import Pauses
from chaosckpt.model.mutation import Mutated, Mutation
from chaosckpt.model.operation import Address

T = TypeVar("T")
_FIRST: msgspec.msgpack.Decoder[Ready | Refused] = msgspec.msgpack.Decoder(Ready | Refused)
_DECODER: msgspec.msgpack.Decoder[r.Reply | Push] = msgspec.msgpack.Decoder(r.Reply | Push)
_ANSWER_SECONDS = 300.0
"""A node that answers nothing for so long hangs; its calls take milliseconds. Only harness trouble hangs on it."""
Inbox = queue.SimpleQueue[tuple["Node", Push]]


class Node(Protocol):
    """A node as the trial runner sees it, wherever its process runs: one method for each thing that it can be asked.

    `address` is the IPv4 address at which other nodes' ranks reach it. `inbox`, when set, receives all that the node tells by itself.
    Every method raises HarnessError when the node is gone, or can't do what it is asked.
    """

    address: str
    facts: TargetFacts
    modules: tuple[str, ...]
    threads: int
    """Of its fork server, once that had imported them: more than one, and ranks are started cold."""
    inbox: Inbox | None

    # The job

    def start(self, order: AttemptOrder) -> None:
        """Launch the ranks of one attempt; what an earlier one left is ended first."""

    def rendezvous(self, place: Rendezvous) -> None:
        """Tell this node's ranks, other than rank 0, where the process group meets."""

    def sample(self) -> r.Sample:
        """What is seen of this node's ranks at this instant: how each thread waits, and what moved so far."""

    def describe(self, threads: Sequence[int]) -> list[str]:
        """What each of these threads is called and does, in words; without any, the main thread of each rank."""

    def pauses(self) -> Pauses:
        """How long this node's ranks got nowhere in this attempt."""

    def freeze(self) -> None:
        """From now on no operation lands: gates stay unserved until the ranks are killed."""

    def thaw(self) -> None:
        """Serve the gates again that `freeze` left unserved."""

    def proceed(self, rank: int) -> None:
        """Let a rank go on that reported an acknowledgement: until then it waits, and the node is not quiescent."""

    def kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        """SIGKILL some ranks, or all (None), and all that they started. False when none of them is of this node."""

    def kill_holder(self, fault: int) -> None:
        """SIGKILL the one process whose operation the fault of this index holds."""

    def suspend(self, rank: int) -> bool:
        """SIGSTOP a rank and all that it started. Its end, whenever it comes, is by a fault. False when it isn't there."""

    def wake(self, rank: int) -> bool:
        """SIGCONT a rank that was suspended, and all that it started. False when it isn't there."""

    def terminate(self, ranks: Sequence[int], by: Cause) -> None:
        """SIGTERM some ranks; a command that starts its ranks by itself gets it as a whole."""

    def activate(self, fault: int, on: bool) -> None:
        """The fault of this index is in force from now on, or is over (its Memory.took_effect)."""

    def resume(self, fault: int) -> None:
        """Let go what the fault of this index held (-1: a single step)."""

    def records(self) -> list[list[Labelled]]:
        """What the gates recorded in this attempt, rank by rank."""

    def counts(self) -> dict[int, int]:
        """Operations performed by each rank of this node."""

    def latest(self) -> dict[int, list[Address]]:
        """The addresses of the last few operations of each rank of this node, oldest first."""

    def output(self) -> r.CommandOutput:
        """What a command left to be read in this attempt; nothing where ranks have a target."""

    def use(self, settings: NodeSettings) -> None:
        """From now on ranks run another target or workload; what the fork server has warmed stays warm."""

    def decode(self, patterns: Sequence[str]) -> None:
        """From the next attempt on, what these expressions match in a path is read as `*`."""

    # Its storage

    def reset(self, directories: Sequence[str]) -> None:
        """Empty these marked storage directories before a trial."""

    def drop(self, directory: str) -> int:
        """Empty one marked storage directory as a fault; returns how many files it held."""

    def keep(self, copies: Mapping[str, str]) -> bool:
        """Copy marked storage directories as they are now, each to the path beside it; False where there is no room for that.

        No operation of this node's ranks lands meanwhile: the copy is what a kill at this moment would have left.
        """

    def exchange(self, copies: Mapping[str, str]) -> None:
        """Let each marked storage directory and the copy beside it change places."""

    def discard(self, copies: Sequence[str]) -> None:
        """Remove such copies; one that isn't there is fine."""

    def inventory(self, tiers: Mapping[str, str]) -> list[tuple[str, int]]:
        """(`tier:path` with nonces decoded, bytes) of every file on these tiers, given as tier -> directory."""

    def manifest(self, tier: str, directory: str) -> list[FileSeen]:
        """(`tier:path` with nonces decoded, bytes, digest of the content) of every file below a tier's directory, sorted."""

    def mutate(self, tier: str, directory: str, mutation: Mutation) -> list[Mutated]:
        """Change what lies in a tier's marked directory as a fault; returns what was changed."""

    def lose(self, directory: str) -> int:
        """Die as a machine dies: every process by SIGKILL, then this node's storage; returns how many files it held."""

    # Its end

    def close(self) -> None:
        """End the node process and everything that it started."""

    def destroy(self) -> None:
        """SIGKILL the node with all its processes, as a machine that is gone."""


class ConnectedNode(Node):
    """A node process behind a channel: each method sends one request. One thread reads what it says; any thread may ask.

    How the process was started, and how it ends, is the subclass's matter. Raises UsageError or HarnessError when the process
    refuses the settings, or ends before it is ready.
    """

    def __init__(self, channel: Channel, settings: NodeSettings, address: str) -> None:
        self.address = address
        self.inbox: Inbox | None = None
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[r.Reply]] = {}
        self._lock = threading.Lock()
        self._gone = ""
        self._begin(settings)

    def _begin(self, settings: NodeSettings) -> None:
        try:
            self._channel.send(settings)
            answer = _FIRST.decode(self._channel.receive())
        except (EOFError, OSError) as error:
            self._channel.close()
            raise HarnessError(self._ended_early()) from error
        if isinstance(answer, Refused):
            self._channel.close()
            self._refused()
            raise (UsageError if answer.usage else HarnessError)(answer.why)
        self.facts, self.modules, self.threads = answer.facts, answer.modules, answer.threads
        self._reader = threading.Thread(target=self._read, name="chaosckpt-node-reader", daemon=True)
        self._reader.start()

    def _ended_early(self) -> str:
        """The sentence for a process that ended before it was ready."""
        return "a node process exited before it was ready"

    def _refused(self) -> None:
        """The process refused its settings and ends; free what belongs to it."""

    def close(self) -> None:
        """See Node.close."""
        raise NotImplementedError

    def destroy(self) -> None:
        """See Node.destroy."""
        raise NotImplementedError

    def _read(self) -> None:
        while (payloads := self._feed()) is not None:
            for payload in payloads:
                message = _DECODER.decode(payload)
                if isinstance(message, r.Reply):
                    self._waiting.pop(message.number).set_result(message)
                elif self.inbox is not None:
                    self.inbox.put((self, message))
        with self._lock:
            self._gone = f"the node process at {self.address} ended unexpectedly"
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(HarnessError(self._gone))
        if self.inbox is not None:
            self.inbox.put((self, Trouble(self._gone)))

    def _feed(self) -> list[bytes] | None:
        try:
            return self._channel.feed()
        except OSError:
            return None

    def _ask(self, request: r.Ask[T]) -> T:
        number = next(self._numbers)
        future: Future[r.Reply] = Future()
        with self._lock:
            if self._gone:
                raise HarnessError(self._gone)
            self._waiting[number] = future
            try:
                self._channel.send(r.Envelope(number, request))  # type: ignore[arg-type]  # every Ask is a Request
            except OSError as error:
                raise HarnessError(f"the node process at {self.address} ended unexpectedly") from error
        try:
            reply = future.result(timeout=_ANSWER_SECONDS)
        except TimeoutError as error:
            raise HarnessError(
                f"the node at {self.address} did not answer {r.verb_of(request)!r} within {_ANSWER_SECONDS} s"
            ) from error
        if reply.error:
            raise HarnessError(f"a node failed to {r.verb_of(request)}: {reply.error}")
        return r.reply_to(request, reply.value)

    def start(self, order: AttemptOrder) -> None:
        self._ask(r.Start(order))

    def rendezvous(self, place: Rendezvous) -> None:
        self._ask(r.Meet(place))

    def sample(self) -> r.Sample:
        return self._ask(r.TakeSample())

    def describe(self, threads: Sequence[int]) -> list[str]:
        return self._ask(r.DescribeThreads(tuple(threads)))

    def pauses(self) -> Pauses:
        return self._ask(r.GetPauses())

    def freeze(self) -> None:
        self._ask(r.Freeze())

    def thaw(self) -> None:
        self._ask(r.Thaw())

    def proceed(self, rank: int) -> None:
        self._ask(r.Proceed(rank))

    def kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        return self._ask(r.Kill(None if ranks is None else tuple(ranks), by))

    def kill_holder(self, fault: int) -> None:
        self._ask(r.KillHolder(fault))

    def suspend(self, rank: int) -> bool:
        return self._ask(r.Suspend(rank))

    def wake(self, rank: int) -> bool:
        return self._ask(r.Wake(rank))

    def terminate(self, ranks: Sequence[int], by: Cause) -> None:
        self._ask(r.Terminate(tuple(ranks), by))

    def activate(self, fault: int, on: bool) -> None:
        self._ask(r.Activate(fault, on))

    def resume(self, fault: int) -> None:
        self._ask(r.Resume(fault))

    def records(self) -> list[list[Labelled]]:
        return self._ask(r.GetRecords())

    def counts(self) -> dict[int, int]:
        return self._ask(r.GetCounts())

    def latest(self) -> dict[int, list[Address]]:
        return self._ask(r.GetLatest())

    def output(self) -> r.CommandOutput:
        return self._ask(r.GetOutput())

    def use(self, settings: NodeSettings) -> None:
        self._ask(r.Use(settings))

    def decode(self, patterns: Sequence[str]) -> None:
        self._ask(r.Decode(tuple(patterns)))

    def reset(self, directories: Sequence[str]) -> None:
        self._ask(r.Reset(tuple(directories)))

    def drop(self, directory: str) -> int:
        return self._ask(r.Drop(directory))

    def keep(self, copies: Mapping[str, str]) -> bool:
        return self._ask(r.Keep(dict(copies)))

    def exchange(self, copies: Mapping[str, str]) -> None:
        self._ask(r.Exchange(dict(copies)))

    def discard(self, copies: Sequence[str]) -> None:
        self._ask(r.Discard(tuple(copies)))

    def inventory(self, tiers: Mapping[str, str]) -> list[tuple[str, int]]:
        return self._ask(r.ListFiles(dict(tiers)))

    def manifest(self, tier: str, directory: str) -> list[FileSeen]:
        return self._ask(r.GetManifest(tier, directory))

    def mutate(self, tier: str, directory: str, mutation: Mutation) -> list[Mutated]:
        return self._ask(r.Mutate(tier, directory, mutation))

    def lose(self, directory: str) -> int:
        return self._ask(r.Lose(directory))

    def _shut(self) -> None:
        """End the channel and its reader."""
        try:
            self._channel.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end was faster
        if self._reader is not threading.current_thread():
            self._reader.join(timeout=15)
        self._channel.close()


class LocalNode(ConnectedNode):
    """A node process started by this one, on this machine."""

    def __init__(self, settings: NodeSettings, address: str = "127.0.0.1") -> None:
        ours, theirs = pair()
        command = [sys.executable, "-P", "-m", "chaosckpt.engine.node.server", str(theirs.fileno())]
        environment = environment_with(settings.import_path)
        # What a target prints while it is imported must not get into the result that we print: 2 is our standard error.
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=2, env=environment
        )
        theirs.close()
        try:
            super().__init__(Channel(ours), settings, address)
        except BaseException:
            # An interrupt while it warms up, too, must not leave it behind: it ends with its channel.
            ours.close()
            self._end()
            raise

    def _ended_early(self) -> str:
        return f"a node process exited with status {self._process.wait()} before it was ready"

    def _refused(self) -> None:
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """See Node.close."""
        self.inbox = None
        self._shut()
        self._end()

    def _end(self) -> None:
        """Wait for the process, whose channel has ended; one that was stopped goes on, and one that hangs is ended."""
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def destroy(self) -> None:
        """See Node.destroy. The fork server sees its channel end and takes the ranks along."""
        self.inbox = None
        self._process.kill()
        self._process.wait()
        self._shut()


def environment_with(import_path: tuple[str, ...], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A process environment in which Python finds modules in `import_path` first."""
    environment = dict(base)
    if import_path:
        environment["PYTHONPATH"] = os.pathsep.join([*import_path, *filter(None, [environment.get("PYTHONPATH", "")])])
    return environment
