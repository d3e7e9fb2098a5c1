"""The guard: what a program under test may not change outside the tracked roots, and with whom it may not talk."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Sequence

from chaosckpt.gate.descriptors import below
from chaosckpt.gate.interfaces import own_addresses

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
        self._own = own_addresses() if network else frozenset()
        self.refused: list[str] = []
        self.asked: dict[str, bytes] = {}
        """Sockets that were asked for the machine's own address (chaosckpt/gate/peers.py), and the peer that was named to them."""

    def allows(self, path: bytes) -> bool:
        """Whether this canonical path outside every root may be changed."""
        if not self._files:
            return True
        return any(below(path, place) for place in (*_DEVICES, *self._writable))

    def refuse(self, path: bytes, doing: str) -> None:
        self.note(f"{doing} of {os.fsdecode(path)}")

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


def peer_of(address: bytes) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, int]:
    """(host, port) of an internet address; no host for any other family, none of which leaves the machine unasked."""
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET and len(address) >= 8:
        return ipaddress.IPv4Address(address[4:8]), int.from_bytes(address[2:4], "big")
    if family == socket.AF_INET6 and len(address) >= 24:
        host = ipaddress.IPv6Address(address[8:24])
        return host.ipv4_mapped or host, int.from_bytes(address[2:4], "big")
    return None, 0
