"""Nodes as Ray actors: the actor owns a node process, and that process talks to the trial runner over one TCP connection.

Ray decides where a node lives, keeps it, and ends it. What a trial says to its nodes would cost a millisecond a call
through Ray; over the connection it costs a twentieth of that, or less, and what a node tells arrives in the order in
which it was told. The node process dies with its actor (the kernel's parent-death signal), with the driver (the
connection ends), and with its machine.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.campaign.ray.cluster import Cluster, imported_ray
from chaosckpt.campaign.ray.reaper import SESSION
from chaosckpt.engine.runner.node_client import ConnectedNode, environment_with
from chaosckpt.engine.wire import storage
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import NodeSettings
from chaosckpt.engine.wire.versions import of
from chaosckpt.errors import HarnessError, UsageError

ACTOR_SECONDS = 120.0
"""How long an actor may take until its process runs: Ray starts a worker for it, on a busy machine perhaps."""
_WARM_SECONDS = 300.0
_MEET_SECONDS = 20.0
_END_SECONDS = 30.0
_TAIL_BYTES = 2000


class Birth(msgspec.Struct, frozen=True):
    """What an actor tells of itself and its node process."""

    address: str
    machine: str
    raylet: str
    pid: int
    actor_pid: int
    directory: str
    versions: dict[str, str]


class NodeActor:
    """The actor: owns one node process, its logs, and the node-local storage of the place that it takes in a topology.

    A plain class, made an actor by `start`; it must stay synchronous, since the parent-death signal is bound to the thread that
    starts the process, and Ray runs a synchronous actor in its main thread.
    """

    def __init__(
        self,
        meeting: tuple[str, int],
        token: str,
        address: str,
        base: str | None,
        import_path: tuple[str, ...],
        session: str,
    ) -> None:
        self._address = address or own_address()
        self._base = Path(base) if base is not None else Path(tempfile.gettempdir())
        storage.sweep(self._base)
        self._directory = storage.make(self._base / f"{storage.PREFIX}{session}-node-{token[:8]}")
        self._owned = [self._directory]
        (self._directory / "logs").mkdir()
        self._log = self._directory / "node.log"
        self._process = self._launch(meeting, token, environment_with(import_path, _clean(os.environ, session)))

    def _launch(self, meeting: tuple[str, int], token: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with socket.create_connection(meeting, timeout=_MEET_SECONDS) as connection, open(self._log, "wb") as log:
            connection.settimeout(None)
            be_prompt(connection)
            connection.sendall(token.encode())
            command = [
                sys.executable,
                "-P",
                "-m",
                "chaosckpt.engine.node.server",
                str(connection.fileno()),
                str(os.getpid()),
            ]
            return subprocess.Popen(
                command,
                pass_fds=[connection.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def birth(self) -> Birth:
        """Who it is."""
        machine, raylet = os.uname().nodename, imported_ray().get_runtime_context().get_node_id()
        return Birth(self._address, machine, raylet, self._process.pid, os.getpid(), str(self._directory), versions())

    def settle(self, name: str) -> str:
        """Make the storage of the place `name` on this machine, with an empty tier `local` in it; returns its path.

        The path depends on the name alone, so that a spare finds its storage where the lost node had it.
        """
        place = self._base / f"{storage.PREFIX}{name}"
        storage.remove(place)
        self._owned.append(storage.make(place))
        (place / "local").mkdir()
        return str(place)

    def witness(self, path: str, token: str, write: bool) -> str:
        """Write a token to shared storage, or read it there. Returns an empty string, or what is wrong."""
        try:
            if write:
                Path(path).write_text(token)
                return ""
            return "" if Path(path).read_text() == token else f"{path} holds something else there"
        except OSError as error:
            return f"{path}: {error.strerror}"

    def log_tail(self) -> str:
        """The end of what the node process and its fork server printed."""
        text = self._log.read_bytes()[-_TAIL_BYTES:]
        return text.decode(errors="replace").strip()

    def end(self, kill: bool) -> None:
        """Wait for the node process, whose connection was closed, or SIGKILL it at once; remove what it stored here."""
        if kill:
            self._process.kill()
        try:
            self._process.wait(timeout=_END_SECONDS / 2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for directory in self._owned:
            storage.remove(directory)
        self._owned.clear()


class RayNode(ConnectedNode):
    """A node of the trial runner (chaosckpt.engine.runner.node_client.Node) whose process is owned by an actor."""

    def __init__(self, actor: Any, channel: Channel, settings: NodeSettings, birth: Birth) -> None:
        self.actor = actor
        self.birth = birth
        self.home = birth.directory
        logs = str(Path(birth.directory) / "logs")
        channel.connection.settimeout(_WARM_SECONDS)
        super().__init__(channel, msgspec.structs.replace(settings, directory=logs), birth.address)

    @property
    def machine(self) -> str:
        """The name of the machine on which it runs."""
        return self.birth.machine

    def _begin(self, settings: NodeSettings) -> None:
        super()._begin(settings)
        self._channel.connection.settimeout(None)

    def _ended_early(self) -> str:
        tail = self._ask_actor("log_tail") or "it printed nothing"
        return f"the node process on {self.machine} ended before it was ready: {tail}"

    def _ask_actor(self, method: str, *arguments: Any) -> Any:
        """Call the actor; None when it is gone, or Ray is."""
        ray = imported_ray()
        if not ray.is_initialized():
            return None  # a call would start a cluster

        try:
            return ray.get(getattr(self.actor, method).remote(*arguments), timeout=_END_SECONDS)
        except (ray.exceptions.RayError, TimeoutError):
            return None

    def settle(self, name: str) -> None:
        """Take a place of a topology: its node-local storage lies in `home` from now on. Raises HarnessError."""
        home = self._ask_actor("settle", name)
        if home is None:
            raise HarnessError(f"the actor on {self.machine} can't make the node-local storage of {name}")
        self.home = home

    def witness(self, path: str, token: str, write: bool) -> str:
        """See NodeActor.witness."""
        wrong = self._ask_actor("witness", path, token, write)
        return "its actor is gone" if wrong is None else str(wrong)

    def close(self) -> None:
        """See Node.close."""
        self._end(kill=False)

    def destroy(self) -> None:
        """See Node.destroy. Ray tells of an actor's death before its processes are gone, so they go first."""
        self._end(kill=True)

    def _end(self, kill: bool) -> None:
        ray = imported_ray()

        self.inbox = None
        if not kill:
            self._shut()
        self._ask_actor("end", kill)
        if ray.is_initialized():
            ray.kill(self.actor)
        if kill:
            self._shut()


def start(
    cluster: Cluster,
    settings: Callable[[], NodeSettings],
    *,
    base: str | None,
    import_path: tuple[str, ...],
    options: Mapping[str, Any],
    track: Callable[[Any], None] = lambda actor: None,
) -> RayNode:
    """Start an actor with its node process and wait until that is warm.

    `settings` are asked for when the process is there; `options` are Ray's, for placement; `track` is told of the actor, which may be
    killed to end the wait. Raises UsageError when the settings are refused or the machine has other versions, HarnessError when it
    doesn't start.
    """
    ray = imported_ray()
    address = "127.0.0.1" if cluster.own else ""
    with _meeting(cluster.address) as (listener, token):
        arguments = (listener.getsockname(), token, address, base, import_path, cluster.session)
        actor = ray.remote(NodeActor).options(max_restarts=0, max_task_retries=0, **options).remote(*arguments)
        try:
            track(actor)
            birth = ray.get(actor.birth.remote(), timeout=ACTOR_SECONDS)
            _compare(birth)
            wanted = settings()
            return RayNode(actor, Channel(_accept(listener, token)), wanted, birth)
        except (ray.exceptions.RayError, OSError) as error:
            ray.kill(actor)
            if "No module named 'chaosckpt'" in str(error):
                raise UsageError(
                    "a machine of the cluster has no chaosckpt; install it on every node, in the Python that Ray runs"
                ) from error
            raise HarnessError(f"a node actor did not start: {_last_line(error)}") from error
        except BaseException:  # an interrupt, too, must not leave the actor behind
            ray.kill(actor)
            raise


@contextlib.contextmanager
def _meeting(address: str) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket for one node process, and the token by which it is known."""
    with socket.create_server((address, 0)) as listener:
        yield listener, secrets.token_hex(16)


def _accept(listener: socket.socket, token: str) -> socket.socket:
    """The connection of the process that knows the token; any other is turned away."""
    listener.settimeout(_MEET_SECONDS)
    while True:
        connection, _ = listener.accept()
        connection.settimeout(_MEET_SECONDS)
        try:
            said = connection.recv(len(token), socket.MSG_WAITALL)
        except OSError:
            said = b""
        if hmac.compare_digest(said, token.encode()):
            be_prompt(connection)
            return connection
        connection.close()


def be_prompt(connection: socket.socket) -> None:
    """Small messages leave at once, and a machine that vanished without a word is noticed within half a minute."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


def own_address() -> str:
    """The address of this Ray node."""
    ray = imported_ray()

    return str(ray.util.get_node_ip_address())


def versions() -> dict[str, str]:
    """Versions that must be equal on every node."""
    return {**of("chaosckpt", "torch"), "Python": ".".join(map(str, sys.version_info[:2]))}


def _compare(birth: Birth) -> None:
    for name, here in versions().items():
        there = birth.versions.get(name)
        if there != here:
            raise UsageError(
                f"{birth.machine} has {name} {there}, this machine has {here}; install the same version on every node"
            )


def _clean(environment: Mapping[str, str], session: str) -> dict[str, str]:
    """A worker's environment without Ray's own variables, so that ranks see what they would see without Ray, and no secret."""
    kept = {name: value for name, value in environment.items() if not name.startswith("RAY_")}
    return kept | {SESSION: session}


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
