"""The runner's end of a node process, and the node process on this machine."""

from __future__ import annotations

import itertools
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from chaosckpt.engine.channel import Channel, pair
from chaosckpt.engine.messages import NodeSettings, Push, Reply, TargetFacts, Trouble
from chaosckpt.errors import HarnessError, UsageError

_DECODER: msgspec.msgpack.Decoder[Reply | Push] = msgspec.msgpack.Decoder(Reply | Push)
_ANSWER_SECONDS = 300.0
"""A node that answers nothing for so long hangs; its calls take milliseconds. Only harness trouble hangs on it."""
Inbox = queue.SimpleQueue[tuple["Node", Push]]


class Node(Protocol):
    """A node as the trial runner sees it, wherever its process runs.

    `address` is the IPv4 address at which other nodes' ranks reach it. `inbox`, when set, receives all that the node tells by itself.
    """

    address: str
    facts: TargetFacts
    modules: tuple[str, ...]
    inbox: Inbox | None

    def call(self, verb: str, arguments: Any = None) -> Any:
        """Run one verb of chaosckpt/engine/node.py there. Raises HarnessError when the node is gone or the verb fails."""

    def close(self) -> None:
        """End the node process and everything that it started."""

    def destroy(self) -> None:
        """SIGKILL the node with all its processes, as a machine that is gone."""


class ConnectedNode:
    """A node process behind a channel. One thread reads what it says; calls are made from any thread.

    How the process was started, and how it ends, is the subclass's matter. Raises UsageError or HarnessError when the process
    refuses the settings, or ends before it is ready.
    """

    def __init__(self, channel: Channel, settings: NodeSettings, address: str) -> None:
        self.address = address
        self.inbox: Inbox | None = None
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._gone = ""
        self._begin(settings)

    def _begin(self, settings: NodeSettings) -> None:
        try:
            self._channel.send(settings)
            reply = _DECODER.decode(self._channel.receive())
        except (EOFError, OSError) as error:
            self._channel.close()
            raise HarnessError(self._ended_early()) from error
        assert isinstance(reply, Reply)
        if reply.error:
            self._channel.close()
            self._refused()
            raise (UsageError if reply.value == UsageError.exit_code else HarnessError)(reply.error)
        self.facts, self.modules = msgspec.convert(reply.value, tuple[TargetFacts, tuple[str, ...]])
        self._reader = threading.Thread(target=self._read, name="chaosckpt-node-reader", daemon=True)
        self._reader.start()

    def _ended_early(self) -> str:
        """The sentence for a process that ended before it was ready."""
        return "a node process ended before it was ready"

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
                if isinstance(message, Reply):
                    self._waiting.pop(message.number).set_result(message)
                elif self.inbox is not None:
                    self.inbox.put((self, message))
        with self._lock:
            self._gone = f"the node process at {self.address} is gone"
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

    def call(self, verb: str, arguments: Any = None) -> Any:
        """See Node.call."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._lock:
            if self._gone:
                raise HarnessError(self._gone)
            self._waiting[number] = future
            try:
                self._channel.send({"number": number, "verb": verb, "arguments": arguments})
            except OSError as error:
                raise HarnessError(f"the node process at {self.address} is gone") from error
        try:
            reply = future.result(timeout=_ANSWER_SECONDS)
        except TimeoutError as error:
            raise HarnessError(
                f"the node at {self.address} did not answer {verb!r} within {_ANSWER_SECONDS} s"
            ) from error
        if reply.error:
            raise HarnessError(f"a node could not {verb}: {reply.error}")
        return reply.value

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
        command = [sys.executable, "-P", "-m", "chaosckpt.engine.node", str(theirs.fileno())]
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
        return f"a node process ended with status {self._process.wait()} before it was ready"

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
        """Wait for the process, whose channel has ended; one that hangs is ended."""
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
