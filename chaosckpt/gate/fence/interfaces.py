"""The addresses of this machine's network interfaces, asked from the kernel over netlink (RTM_GETADDR).

A machine's names tell less: many a `getaddrinfo(gethostname())` says 127.0.0.1 only, while Ray, NCCL and gloo bind eth0's address.
"""

from __future__ import annotations

import ipaddress
import socket
import struct

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NETLINK_ROUTE = 0
_RTM_GETADDR = 22
_NLM_F_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_HEADER = struct.Struct("=IHHII")
_MESSAGE_BYTES = 8  # of struct ifaddrmsg, behind the header
_LENGTHS: dict[int, int] = {socket.AF_INET: 4, socket.AF_INET6: 16}


def own_addresses() -> frozenset[Address]:
    """Every address of every interface, in both families, as it is now. Empty where the kernel doesn't say."""
    found: set[Address] = set()
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE) as netlink:
            netlink.send(
                _HEADER.pack(_HEADER.size + _MESSAGE_BYTES, _RTM_GETADDR, _NLM_F_REQUEST_DUMP, 1, 0) + bytes(8)
            )
            done = False
            while not done:
                addresses, done = _parsed(netlink.recv(1 << 16))
                found |= addresses
    except OSError:
        pass  # a sandbox without netlink: loopback alone is known to be this machine then
    return frozenset(found)


def _parsed(reply: bytes) -> tuple[set[Address], bool]:
    """The addresses in one reply, and whether it ends the dump."""
    found: set[Address] = set()
    offset = 0
    while offset + _HEADER.size <= len(reply):
        length, kind, *_ = _HEADER.unpack_from(reply, offset)
        if kind in (_NLMSG_DONE, _NLMSG_ERROR) or length < _HEADER.size:
            return found, True
        found |= _of_message(reply[offset + _HEADER.size : offset + length])
        offset += (length + 3) & ~3
    return found, not reply


def _of_message(message: bytes) -> set[Address]:
    """One struct ifaddrmsg with its attributes (linux/if_addr.h)."""
    size = _LENGTHS.get(message[0])
    found: set[Address] = set()
    at = _MESSAGE_BYTES
    while size is not None and at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        # Of a point-to-point interface IFA_ADDRESS is the peer's, and IFA_LOCAL its own.
        if kind in (_IFA_ADDRESS, _IFA_LOCAL) and length == 4 + size:
            address = ipaddress.ip_address(message[at + 4 : at + length])
            found = {address} if kind == _IFA_LOCAL else (found or {address})
        at += max(4, (length + 3) & ~3)
    return found
