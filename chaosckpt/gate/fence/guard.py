"""The guard: what a program under test may not change outside the tracked roots, and with whom it may not talk."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import socket
import stat
import struct
from collections.abc import Sequence

from chaosckpt.gate import kernel
from chaosckpt.gate.descriptors import below
from chaosckpt.gate.fence.interfaces import own_addresses
from chaosckpt.model.file_names import printable, text_of

SHARED = (b"/dev/shm", b"/dev/mqueue")
"""Where all programs of the machine name their shared memory, semaphores and message queues."""
MOST_REFUSALS = 50
_NAME_SERVICE = 53


class Guard:
    """Knows where writing is allowed, and which addresses belong to this machine.

    `refused` says in phrases what was not let through, each once.
    """

    def __init__(
        self, writable: Sequence[str], *, files: bool = True, network: bool = True, made: set[bytes] | None = None
    ) -> None:
        """With `files` changes outside `writable` are refused, with `network` connections that leave the machine.

        `made` are the names in SHARED that the job has made; it grows.
        """
        self.made = set() if made is None else made
        self._writable = [os.fsencode(os.path.realpath(path)) for path in writable]
        self._files = files
        self._network = network
        self._own = own_addresses() if network else frozenset()
        self.refused: list[str] = []
        self.asked: dict[str, bytes] = {}
        """Sockets that were asked for the machine's own address (see peers.py), and the peer that was named to them."""

    def allows(self, path: bytes, *, opening: bool = False) -> bool:
        """Whether this canonical path outside every root may be changed, or with `opening` only be opened for writing.

        Of what is there, a device may be opened: what it does is no change of a file. /proc is not this function's.
        """
        if not self._files or any(below(path, place) for place in self._writable):
            return True
        name = shared_name(path)
        if name is not None:
            return name in self.made
        return opening and below(path, b"/dev") and _is_device(path)

    def may_make(self, path: bytes) -> bool:
        """Whether this name, which is not there, may be made. One in SHARED then belongs to the job."""
        name = shared_name(path)
        if self._files and name == path:
            self.made.add(name)
        return self.allows(path)

    def refuse(self, path: bytes, doing: str) -> None:
        self.note(f"{doing} of {printable(text_of(path))}")

    def is_inside(self, address: bytes) -> bool:
        """Whether this address, as the kernel lays it out (struct sockaddr), may be reached."""
        if not self._network or len(address) < 2:
            return True
        host, port = peer_of(address)
        if host is None or host.is_loopback or host.is_unspecified or host in self._own:
            return True
        return port == _NAME_SERVICE  # asking for a name sends nothing of the program's

    def reaches(self, address: bytes) -> bool:
        """The same, noted where it may not."""
        if self.is_inside(address):
            return True
        self.note(f"connection to {peer_of(address)[0]}")
        return False

    def note(self, sentence: str) -> None:
        """Record, once, what was refused, as a phrase."""
        if sentence not in self.refused and len(self.refused) < MOST_REFUSALS:
            self.refused.append(sentence)


def shared_name(path: bytes) -> bytes | None:
    """The name directly below a place in SHARED to which this path belongs; None outside of them, and for the places."""
    for place in SHARED:
        if below(path, place) and path != place:
            return place + b"/" + path[len(place) + 1 :].partition(b"/")[0]
    return None


def remove_shared(path: bytes) -> None:
    """Remove a name in SHARED that the job has made, where it is still there."""
    with contextlib.suppress(OSError):
        if path.startswith(SHARED[1]):
            kernel.remove_queue(path.rpartition(b"/")[2])
        elif stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _is_device(path: bytes) -> bool:
    """A terminal, /dev/null and their like, a pipe or a socket; no disk, which holds files."""
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(kind) or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


def peer_of(address: bytes) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, int]:
    """(host, port) of an internet address; no host for any other family, none of which leaves the machine unasked."""
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET and len(address) >= 8:
        return ipaddress.IPv4Address(address[4:8]), int.from_bytes(address[2:4], "big")
    if family == socket.AF_INET6 and len(address) >= 24:
        host = ipaddress.IPv6Address(address[8:24])
        return host.ipv4_mapped or host, int.from_bytes(address[2:4], "big")
    return None, 0
