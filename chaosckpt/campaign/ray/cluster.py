"""The Ray cluster of a campaign: a quiet one of our own on this machine, or the one at an address.

Ray reads how it authenticates when it is imported, so it is imported here inside of functions, once its environment is set.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tenacity

from chaosckpt.campaign.ray.reaper import SESSION, Reaper, reap
from chaosckpt.engine.wire import storage
from chaosckpt.errors import HarnessError, UsageError

_OBJECT_STORE_BYTES = 80 << 20
_REACH_SECONDS = 5.0
_LONGEST_DIRECTORY = 42
"""Ray's sockets lie 64 characters deeper, and a socket's path may have 107."""
_OURS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # else the end of the head is noticed after a minute
    "RAY_memory_monitor_refresh_ms": "0",  # memory is the user's matter; a monitor that kills workers looks like a finding
    "RAY_worker_niceness": "0",  # a campaign is what its user waits for: nodes run as soon as the other processes do
    "RAY_log_rotation_max_bytes": str(8 << 20),
    "RAY_log_rotation_backup_count": "1",
}


def imported_ray() -> Any:
    """Ray, whose calls carry no types worth checking."""
    import ray

    return ray


class Cluster(msgspec.Struct, frozen=True):
    """A connected Ray cluster.

    `address` is the IPv4 address of this process towards the nodes; `session` the token that all its processes carry.
    """

    address: str
    session: str
    own: bool
    cpus: float

    def machines(self) -> int:
        """How many Ray nodes are alive now."""
        ray = imported_ray()

        return sum(1 for node in ray.nodes() if node["Alive"])


@contextlib.contextmanager
def connect(address: str | None, *, cpus: int, directory: Path | None = None) -> Iterator[Cluster]:
    """Connect to the cluster at `address`, or start one of our own with `cpus` CPUs, and leave nothing of it at the end.

    `directory` is where our own cluster keeps its files (default: the temporary directory), when its path is short enough.
    Signal handlers stay as they were. Raises UsageError for an address where no cluster can be joined, HarnessError for a cluster of
    our own that doesn't start.
    """
    if address is None:
        with _own(cpus, directory) as cluster:
            yield cluster
        return
    _check(address)
    with _handlers_kept():
        _join(address)
    ray = imported_ray()

    try:
        total = float(ray.cluster_resources().get("CPU", 0))
        yield Cluster(ray.util.get_node_ip_address(), secrets.token_hex(8), False, total)
    finally:
        with _handlers_kept():
            ray.shutdown()


@contextlib.contextmanager
def _own(cpus: int, directory: Path | None) -> Iterator[Cluster]:
    session = secrets.token_hex(8)
    base = _short(directory)
    storage.sweep(base)
    home = base / f"{storage.PREFIX}ray-{session[:6]}"
    reaper = Reaper(session, home)  # before there is anything that it would have to clear away
    try:
        storage.make(home)
        with _environment(_variables() | {SESSION: session}):
            ray = imported_ray()

            try:
                with _handlers_kept():
                    _start(cpus, home)
                yield Cluster("127.0.0.1", session, True, float(cpus))
            finally:
                with _handlers_kept():
                    ray.shutdown()
    finally:
        reap(session, home)
        reaper.dismiss()


def _variables() -> dict[str, str]:
    """What makes a cluster of our own quiet and closed to others; what the user has set stays."""
    variables = {name: value for name, value in _OURS.items() if name not in os.environ}
    first_import = "ray" not in sys.modules or _secret.cache_info().currsize
    if "RAY_AUTH_MODE" not in os.environ and first_import:
        variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _secret()}
    return variables


@functools.cache
def _secret() -> str:
    """One for the whole process, since Ray reads it once."""
    return secrets.token_hex(16)


def _short(directory: Path | None) -> Path:
    """The first place whose path leaves room for Ray's sockets."""
    for place in (directory, Path(tempfile.gettempdir()), Path("/tmp")):
        if place is not None and len(str(place)) + len(storage.PREFIX) + 11 <= _LONGEST_DIRECTORY:
            return place
    return Path("/tmp")


def _start(cpus: int, home: Path) -> None:
    ray = imported_ray()

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(2),
        retry=tenacity.retry_if_exception_type((RuntimeError, OSError)),
        before_sleep=lambda state: ray.shutdown(),
        reraise=True,
    )
    try:
        retrying(
            ray.init,
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            _temp_dir=str(home),
        )
    except (RuntimeError, OSError) as error:
        first = str(error).strip().partition("\n")[0]
        raise HarnessError(
            f"Ray does not start on this machine: {first}; `chaosckpt doctor` looks for the reason"
        ) from error


def _check(address: str) -> None:
    """Refuse what can't be an address of a cluster, before Ray waits for it."""
    if address == "auto":
        return
    if "://" in address:
        raise UsageError(
            f"--address {address} is not the address of a cluster's head; give it as HOST:PORT, such as 10.0.0.1:6379"
        )
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise UsageError(f"--address {address} lacks a port; give it as HOST:PORT, such as {address}:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"nothing answers at --address {address} ({error}); start a cluster by `ray start --head`, or leave --address out"
        ) from error


def _join(address: str) -> None:
    """Join a running cluster. Its authentication is the user's: no variable is set here."""
    ray = imported_ray()

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(2) | tenacity.stop_after_delay(30),
        retry=tenacity.retry_if_exception_type(ConnectionError),
        wait=tenacity.wait_fixed(1),
        reraise=True,
    )
    try:
        _within(
            JOIN_SECONDS,
            lambda: retrying(
                ray.init, address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False
            ),
        )
    except TimeoutError as error:
        raise UsageError(
            f"the Ray cluster at {address} did not let this process join within {JOIN_SECONDS} s, though something listens there; "
            "check that it is the port of the head's GCS (6379 by default), and that this machine reaches the head's other ports"
        ) from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"the Ray cluster at {address} can't be joined ({error or type(error).__name__}); compare its version with this one "
            f"(Ray {ray.__version__}), and RAY_AUTH_MODE and RAY_AUTH_TOKEN with those that it was started with"
        ) from error


JOIN_SECONDS = 60
"""Ray itself goes on trying for many minutes."""


def _within(seconds: float, call: Callable[[], object]) -> None:
    """Call it, and raise TimeoutError where it takes longer: what blocks in a library can't be interrupted, only left behind."""
    done: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # whatever it is, the caller raises it
            done.append(error)
        else:
            done.append(None)

    thread = threading.Thread(target=run, name="joining Ray", daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        raise TimeoutError
    if done[0] is not None:
        raise done[0]


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for what is started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray sets handlers of its own, for SIGTERM at least; put ours back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
