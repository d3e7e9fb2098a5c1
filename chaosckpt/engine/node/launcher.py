"""How a node makes rank processes: forked from its warm fork server, or started cold by exec."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from typing import NoReturn

import msgspec

from chaosckpt.engine.wire.channel import Channel, pair
from chaosckpt.engine.wire.orders import Forked, ForkServerMessage, NodeSettings, Ready, Reaped, Refused
from chaosckpt.engine.wire.process_tree import kill_trees
from chaosckpt.errors import HarnessError, UsageError

_DECODER: msgspec.msgpack.Decoder[ForkServerMessage] = msgspec.msgpack.Decoder(ForkServerMessage)


SET_BY_HARNESS = frozenset({"OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"})
"""Environment variables that a rank is given whatever the environment says; a PYTHONPATH is added to."""


class Launcher:
    """The fork server's other end. With `launch = "exec"` the fork server only tells the target's facts and ends.

    Raises UsageError or HarnessError when the fork server refuses the settings or dies while it warms up, or when the channel of the
    `runner`, who says nothing meanwhile, ends.
    """

    def __init__(self, settings: NodeSettings, runner: Channel) -> None:
        self._settings = settings
        self._python = settings.python or sys.executable
        ours, theirs = pair()
        command = [self._python, "-P", "-m", "chaosckpt.engine.forkserver.server", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=self._environment()
        )
        theirs.close()
        channel = Channel(ours)
        channel.send(settings)
        self._await(channel, runner)
        try:
            answer = _DECODER.decode(channel.receive())
        except (EOFError, ConnectionResetError) as error:
            status = self._process.wait()
            raise HarnessError(
                f"the process that imports target {settings.target} exited with status {status} during the import; look at its output "
                "above, and for code that exits in the imports of the target"
            ) from error
        if isinstance(answer, Refused):
            self._process.wait()
            raise (UsageError if answer.usage else HarnessError)(answer.why)
        if not isinstance(answer, Ready):
            raise HarnessError(f"the fork server answered {answer!r} instead of ready")
        self.ready = answer
        self.channel: Channel | None = channel
        self.dead = False
        self._exits: list[tuple[int, int]] = []
        self._store: socket.socket | None = None
        cold = settings.launch == "exec" or (settings.command is not None and not settings.command.warm)
        if cold or answer.threads != 1:
            # A parent with threads can't be forked safely: its ranks start cold, which is slow but right.
            channel.close()
            self._process.kill()  # its work is done, and a thread of the target's might keep it alive
            self._process.wait()
            self.channel = None

    def _await(self, channel: Channel, runner: Channel) -> None:
        """Until the fork server says something: a target that hangs while it is imported must not outlive the harness."""
        ready, _, _ = select.select([channel, runner], [], [])
        if channel not in ready:
            kill_trees([self._process.pid])
            self._process.wait()
            raise HarnessError("the connection to the runner was lost while the node imported the target")

    def _environment(self) -> dict[str, str]:
        given = self._settings.environment
        environment = dict(os.environ if given is None else given, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        if self._settings.command is not None:
            return dict(self._settings.command.environment)
        if self._settings.directory:
            # torch makes this directory when it is imported, in the temporary directory if it isn't told otherwise.
            environment.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(self._settings.directory, "torchinductor"))
            # What ranks and their children leave in the temporary directory when they are killed, such as the sockets by
            # which torch hands tensors to another process, goes with the node.
            environment["TMPDIR"] = self._settings.temporary or self._settings.directory
        if self._settings.import_path:
            inherited = environment.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = os.pathsep.join([*self._settings.import_path, *filter(None, [inherited])])
        return environment

    @property
    def pid(self) -> int:
        """The fork server's process."""
        return self._process.pid

    def launch(self, connection: int, log: int) -> int:
        """Start a rank that talks over `connection` and prints to `log`. Returns its process number."""
        if self.channel is None:
            command = [self._python, "-P", "-m", "chaosckpt.engine.rank.main", str(connection), str(os.getpid())]
            process = subprocess.Popen(
                command,
                pass_fds=[connection],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
            )
            process.returncode = 0  # the node's loop reaps it, by waitpid; Popen must not try
            return process.pid
        socket.send_fds(self.channel.connection, [b"f"], [connection, log])
        return self._await_fork()

    def _await_fork(self) -> int:
        while True:
            message = self._receive()
            if isinstance(message, Forked):
                return message.pid
            if isinstance(message, Reaped):
                self._exits.append((message.pid, message.status))

    def new_store(self) -> int:
        """The port of a new and empty store by which ranks can meet. It is kept by a process that no rank's end concerns.

        Raises HarnessError where that process dies.
        """
        if self._store is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs, open(os.devnull, "wb") as silence:
                assert self.channel is not None
                socket.send_fds(self.channel.connection, [b"s"], [theirs.fileno(), silence.fileno()])
                self._await_fork()
            self._store = ours
        try:
            self._store.sendall(b"n")
            return int(self._store.recv(16) or 0) or self._storeless()
        except (OSError, ValueError):
            return self._storeless()

    def _storeless(self) -> NoReturn:
        raise HarnessError(
            "the process that keeps the ranks' store died; chaosckpt makes it from torch.distributed, which this interpreter must have"
        )

    def _receive(self) -> ForkServerMessage:
        assert self.channel is not None
        try:
            return _DECODER.decode(self.channel.receive())
        except (EOFError, ConnectionResetError) as error:
            self.dead = True
            raise HarnessError("the fork server of this node died") from error

    def exits(self) -> list[tuple[int, int]] | None:
        """(process, wait status) of ranks that ended, once the channel is readable; None when the fork server is gone."""
        assert self.channel is not None
        payloads = self.channel.feed(wait=False)
        if payloads is None:
            self.dead = True
            return None
        ended, self._exits = self._exits, []
        for payload in payloads:
            message = _DECODER.decode(payload)
            if isinstance(message, Reaped):
                ended.append((message.pid, message.status))
        return ended

    def close(self) -> None:
        """End the fork server; it kills what it forked."""
        if self._store is not None:
            self._store.close()
        if self.channel is not None:
            self.channel.close()
        self._process.send_signal(signal.SIGCONT)  # one that was stopped is to see the end of its channel
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
