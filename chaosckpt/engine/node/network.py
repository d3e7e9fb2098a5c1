"""A network of its own for a node that runs commands: its loopback and this machine's own addresses, shared with nobody else.

Commands that run side by side would else collide on the port that they all are told, such as `MASTER_PORT=29500`. A network namespace
gives each node every port. As root it is made directly, for anybody else inside a user namespace in which all ids stay what they
are; the capabilities that this one brings are given up again, so that files are judged as ever.

**What is there.** The loopback, and an interface for each of the machine's that has addresses, with its name and addresses, so that
what binds to them, or picks `eth0`, finds them. A default route, so that the usual question for the own address (a datagram socket
that is connected to anywhere) is answered as outside. Nothing leaves it: packets to others vanish, and the name servers are
unreachable, so that a look-up fails at once.

**What is not.** Other machines, and what listens on this one outside. A command that is to have these gets the machine's network.

`python -m chaosckpt.engine.node.network` tries it and prints what is in the way, if anything is.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import itertools
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_CAPABILITY_VERSION_3 = 0x20080522
_REQUEST, _ACKNOWLEDGE, _DUMP, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x300, 0x200, 0x400
_ERROR, _DONE = 2, 3
_NEW_LINK, _NEW_ADDRESS, _GET_ADDRESS, _NEW_ROUTE = 16, 20, 22, 24
_NAME, _LINK_INFO, _INFO_KIND = 3, 18, 1
_ADDRESS, _LOCAL, _NO_DUPLICATE_DETECTION = 1, 2, 0x02
_DESTINATION, _OUT, _SOURCE = 1, 4, 7
_MAIN_TABLE, _BOOT, _LINK_SCOPE, _UNICAST, _UNREACHABLE = 254, 3, 253, 1, 7
_LOOPBACK = 1
_KINDS = (b"dummy", b"ifb", b"bridge")
"""Kinds of interface that lead nowhere; a kernel may lack some."""
_HEADER = struct.Struct("=IHHII")
_ANYWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation: a datagram socket that is connected there sends nothing, and tells its own."""
_SECONDS = 30


class _Own(NamedTuple):
    interface: str
    address: bytes

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if len(self.address) == 4 else socket.AF_INET6


@functools.cache
def problem() -> str:
    """What is in the way of networks of their own on this machine, really tried; empty where nothing is."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"setting one up did not end within {_SECONDS} seconds"
    if done.returncode == 0:
        return done.stdout.strip()
    return next(reversed(done.stderr.strip().splitlines()), f"the attempt ended with status {done.returncode}")


def enter() -> None:
    """Give this process, which must have one thread only, and all that it will start a network of their own. Raises OSError."""
    own, routes = list(_own_addresses()), _routes()
    uid, gid = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWNET if uid == 0 else _CLONE_NEWNET | _CLONE_NEWUSER)
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with _Netlink() as netlink:
        _raise_up("lo")
        numbers = _interfaces(netlink, own)
        for interface, address in own:
            with suppress(OSError):  # what then is missing shows when it is tried
                netlink.add_address(numbers[interface], address)
        for family, source in routes.items():
            holder = next((one.interface for one in own if one.address == source), None)
            if holder is not None:
                with suppress(OSError):
                    netlink.add_default(family, numbers[holder], source)
        for server in _name_servers() - {one.address for one in own}:
            with suppress(OSError):
                netlink.add_unreachable(server)
    if uid != 0:
        _give_up_capabilities()


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"a network namespace is refused ({os.strerror(number)})")


def _give_up_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header, none = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities of a user namespace can't be given up")


def _raise_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", interface.encode(), 0)
        (flags,) = struct.unpack_from("=H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", interface.encode(), flags | _IFF_UP))


def _interfaces(netlink: _Netlink, own: list[_Own]) -> dict[str, int]:
    """The number of an interface for each name: one that leads nowhere, or the loopback where the kernel has none of that kind."""
    found = {}
    for name in dict.fromkeys(one.interface for one in own):
        found[name] = _LOOPBACK
        for kind in _KINDS:
            with suppress(OSError):
                netlink.add_interface(name, kind)
                _raise_up(name)
                found[name] = socket.if_nametoindex(name)
                break
    return found


class _Netlink:
    """What changes the interfaces, addresses and routes of this network namespace (linux/rtnetlink.h). Each call raises OSError."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._sequence = itertools.count(1)

    def __enter__(self) -> _Netlink:
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def add_interface(self, name: str, kind: bytes) -> None:
        information = _attribute(_LINK_INFO, _attribute(_INFO_KIND, kind))
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0)
        self._change(_NEW_LINK, body + _attribute(_NAME, name.encode() + b"\0") + information)

    def add_address(self, interface: int, address: bytes) -> None:
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        flags = 0 if family == socket.AF_INET else _NO_DUPLICATE_DETECTION
        body = struct.pack("=BBBBI", family, 8 * len(address), flags, 0, interface)
        self._change(_NEW_ADDRESS, body + _attribute(_LOCAL, address) + _attribute(_ADDRESS, address))

    def add_default(self, family: int, interface: int, source: bytes) -> None:
        body = struct.pack("=BBBBBBBBI", family, 0, 0, 0, _MAIN_TABLE, _BOOT, _LINK_SCOPE, _UNICAST, 0)
        self._change(_NEW_ROUTE, body + _attribute(_OUT, struct.pack("=i", interface)) + _attribute(_SOURCE, source))

    def add_unreachable(self, address: bytes) -> None:
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        bits = 8 * len(address)
        body = struct.pack("=BBBBBBBBI", family, bits, 0, 0, _MAIN_TABLE, _BOOT, 0, _UNREACHABLE, 0)
        self._change(_NEW_ROUTE, body + _attribute(_DESTINATION, address))

    def addresses(self) -> Iterator[tuple[int, bytes]]:
        """(number of the interface, address) of each."""
        self._send(_GET_ADDRESS, _REQUEST | _DUMP, struct.pack("=BBBBI", socket.AF_UNSPEC, 0, 0, 0, 0))
        for kind, body in self._answers():
            if kind != _NEW_ADDRESS:
                continue
            (interface,) = struct.unpack_from("=I", body, 4)
            attributes = dict(_attributes(body[8:]))
            if (address := attributes.get(_LOCAL, attributes.get(_ADDRESS))) is not None:
                yield interface, address

    def _change(self, kind: int, body: bytes) -> None:
        self._send(kind, _REQUEST | _ACKNOWLEDGE | _CREATE | _EXCLUSIVE, body)
        for _ in self._answers():
            continue

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, next(self._sequence), 0) + body)

    def _answers(self) -> Iterator[tuple[int, bytes]]:
        """(kind, body) of each message up to the last one."""
        while True:
            reply, offset = self._socket.recv(1 << 17), 0
            while offset + _HEADER.size <= len(reply):
                length, kind, *_ = _HEADER.unpack_from(reply, offset)
                body = reply[offset + _HEADER.size : offset + length]
                if kind == _ERROR and (number := struct.unpack_from("=i", body)[0]):
                    raise OSError(-number, f"the network can't be set up ({os.strerror(-number)})")
                if kind in (_ERROR, _DONE):
                    return
                yield kind, body
                offset += (length + 3) & ~3


def _attribute(kind: int, value: bytes) -> bytes:
    padding = -len(value) % 4
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(padding)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _own_addresses() -> Iterator[_Own]:
    """The addresses of this machine's interfaces, without those that every loopback has."""
    with _Netlink() as netlink:
        for interface, address in netlink.addresses():
            if not ip_address(address).is_loopback:
                with suppress(OSError):  # it is gone since
                    yield _Own(socket.if_indextoname(interface), address)


def _towards(family: int) -> bytes:
    """The own address from which others are reached; empty where none is."""
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as question:
        question.connect((_ANYWHERE[socket.AddressFamily(family)], 9))
        return socket.inet_pton(family, question.getsockname()[0])
    return b""


def _routes() -> dict[socket.AddressFamily, bytes]:
    return {family: _towards(family) for family in _ANYWHERE}


def _name_servers() -> set[bytes]:
    """The addresses of the name servers, without those on the loopback, where nobody will listen."""
    try:
        lines = Path("/etc/resolv.conf").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    found = set()
    for words in map(str.split, lines):
        if words[:1] == ["nameserver"] and len(words) > 1:
            with suppress(ValueError):
                address = ip_address(words[1].partition("%")[0])
                if not address.is_loopback:
                    found.add(address.packed)
    return found


def _names() -> set[str]:
    """What the machine's own name leads to."""
    try:
        return {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()


def _try() -> str:
    """Enter one, and see whether what a job needs is there; says what is missing."""
    own, routes, names = set(_own_addresses()), _routes(), _names()
    try:
        enter()
    except OSError as error:
        return error.strerror or str(error)
    if routes != _routes() or not {one.address for one in own} <= {one.address for one in _own_addresses()}:
        return "the machine's own addresses can't be had in a network namespace"
    if not names <= _names():
        return "the machine's own name is known to its name server only, which can't be asked from a network namespace"
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        client.connect(listener.getsockname())
    return ""


if __name__ == "__main__":
    sys.stdout.write(_try())
