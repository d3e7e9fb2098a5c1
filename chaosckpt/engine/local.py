"""The runner's end of a node process on this machine."""

from __future__ import annotations

import itertools
import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from chaosckpt.engine.channel import Channel, pair
from chaosckpt.engine.messages import NodeSettings, Push, Reply, TargetFacts, Trouble
from chaosckpt.errors import HarnessError, UsageError

_DECODER: msgspec.msgpack.Decoder[Reply | Push] = msgspec.msgpack.Decoder(Reply | Push)
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


class LocalNode:
    """A node process started by this one. One thread reads what it says; calls are made from any thread."""

    def __init__(self, settings: NodeSettings, address: str = "127.0.0.1") -> None:
        self.address = address
        self.inbox: Inbox | None = None
        ours, theirs = pair()
        command = [sys.executable, "-m", "chaosckpt.engine.node", str(theirs.fileno())]
        environment = dict(os.environ)
        if settings.import_path:
            inherited = environment.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = os.pathsep.join([*settings.import_path, *filter(None, [inherited])])
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment)
        theirs.close()
        self._channel = Channel(ours)
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
            raise HarnessError(f"a node process ended with status {self._process.wait()} before it was ready") from error
        assert isinstance(reply, Reply)
        if reply.error:
            self._process.wait()
            raise (UsageError if reply.value == UsageError.exit_code else HarnessError)(reply.error)
        self.facts, self.modules = msgspec.convert(reply.value, tuple[TargetFacts, tuple[str, ...]])
        self._reader = threading.Thread(target=self._read, name="chaosckpt-node-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        while (payloads := self._feed()) is not None:
            for payload in payloads:
                message = _DECODER.decode(payload)
                if isinstance(message, Reply):
                    self._waiting.pop(message.number).set_result(message)
                elif self.inbox is not None:
                    self.inbox.put((self, message))
        self._gone = "the node process is gone"
        with self._lock:
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
                raise HarnessError("the node process is gone") from error
        reply = future.result()
        if reply.error:
            raise HarnessError(f"a node could not {verb}: {reply.error}")
        return reply.value

    def close(self) -> None:
        """See Node.close."""
        self.inbox = None
        self._shut()
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.destroy()

    def destroy(self) -> None:
        """See Node.destroy. The fork server sees its channel end and takes the ranks along."""
        self.inbox = None
        self._process.kill()
        self._process.wait()
        self._shut()

    def _shut(self) -> None:
        import socket

        try:
            self._channel.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end was faster
        if self._reader is not threading.current_thread():
            self._reader.join(timeout=15)
        self._channel.close()
