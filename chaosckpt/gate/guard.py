"""The guard: what a program under test may not change outside the tracked roots, and with whom it may not talk."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Sequence

from chaosckpt.gate.descriptors import below

_DEVICES = (b"/dev", b"/proc", b"/sys")
"""What is written there is no file of the user's; the kernel and its permissions decide."""
MOST_REFUSALS = 50
_NAME_SERVICE = 53


class Guard:
    """Knows where writing is allowed, and which addresses belong to this machine.

    `refused` says in phrases what was not let through, each once.
    """

    def __init__(self, writable: Sequence[str], *, files: bool = True, network: bool = True) -> None:
        """With `files` changes outside `writable` are refused, with `network` connections that leave the machine."""
        self._writable = [os.fsencode(os.path.realpath(path)) for path in writable]
        self._files = files
        self._network = network
        self._own = _own_addresses() if network else frozenset()
        self.refused: list[str] = []

    def allows(self, path: bytes) -> bool:
        """Whether this canonical path outside every root may be changed."""
        if not self._files:
            return True
        return any(below(path, place) for place in (*_DEVICES, *self._writable))

    def refuse(self, path: bytes, doing: str) -> None:
        self._note(f"{doing} of {os.fsdecode(path)}")

    def reaches(self, address: bytes) -> bool:
        """Whether a socket may be connected to this address, as the kernel lays it out (struct sockaddr)."""
        if not self._network or len(address) < 2:
            return True
        host, port = _peer(address)
        if host is None or host.is_loopback or host.is_unspecified or str(host) in self._own:
            return True
        if port == _NAME_SERVICE:
            return True  # asking for a name sends nothing of the program's
        self._note(f"connection to {host}")
        return False

    def _note(self, sentence: str) -> None:
        if sentence not in self.refused and len(self.refused) < MOST_REFUSALS:
            self.refused.append(sentence)


def _peer(address: bytes) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, int]:
    """(host, port) of an internet address; no host for any other family, none of which leaves the machine unasked."""
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET and len(address) >= 8:
        return ipaddress.IPv4Address(address[4:8]), int.from_bytes(address[2:4], "big")
    if family == socket.AF_INET6 and len(address) >= 24:
        host = ipaddress.IPv6Address(address[8:24])
        return host.ipv4_mapped or host, int.from_bytes(address[2:4], "big")
    return None, 0


def _own_addresses() -> frozenset[str]:
    """The addresses of this machine's interfaces, as far as its names lead to them."""
    found: set[str] = set()
    for name in (socket.gethostname(), "localhost"):
        try:
            found.update(str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(name, None))
        except OSError:
            continue  # a machine without a name for itself
    return frozenset(found)
