"""Calls that name a peer on the network: answered only by whether that peer may be reached.

A program that wants to know its own address connects a datagram socket to some other machine and asks for the socket's name: that
sends nothing. It is given what it wants, the address that the kernel would use, but no peer: what it then sends is refused.
"""

from __future__ import annotations

import errno
import os
import socket

from chaosckpt.gate.call import CONTINUE, Call, Reply
from chaosckpt.gate.fence.guard import Guard, peer_of
from chaosckpt.gate.kernel import pidfd_getfd
from chaosckpt.gate.tree import Handler, Tree

_LONGEST_ADDRESS = 128


def _connect(tree: Tree, call: Call) -> Reply:
    """connect(2): (socket, address, its length)."""
    guard = tree.guard
    if guard is None or not call.arguments[1]:
        return CONTINUE
    peer = _named(tree, call, 1, 2)
    if guard.is_inside(peer):
        return CONTINUE
    if _answers_a_question(guard, call, peer):
        return 0
    return CONTINUE if guard.reaches(peer) else -errno.ENETUNREACH


def _send(tree: Tree, call: Call) -> Reply:
    """sendto(2): (socket, bytes, their number, flags, address, its length); without an address to the peer of the socket."""
    guard = tree.guard
    if guard is None:
        return CONTINUE
    if call.arguments[4]:
        return CONTINUE if guard.reaches(_named(tree, call, 4, 5)) else -errno.ENETUNREACH
    if guard.asked and (peer := guard.asked.get(_inode(call))) is not None and not guard.reaches(peer):
        return -errno.ENETUNREACH
    return CONTINUE


def _named(tree: Tree, call: Call, address: int, length: int) -> bytes:
    return tree.memory.read(call.tid, call.arguments[address], min(call.word(length), _LONGEST_ADDRESS))


def _answers_a_question(guard: Guard, call: Call, peer: bytes) -> bool:
    """Give a datagram socket the address by which this machine would send to the peer. False where it is none, or has one."""
    host, port = peer_of(peer)
    try:
        with socket.socket(fileno=pidfd_getfd(call.process.pidfd, call.descriptor(0))) as theirs:
            if theirs.type != socket.SOCK_DGRAM or theirs.getsockname()[1] or host is None:
                return False
            mapped = theirs.family == socket.AF_INET6 and host.version == 4
            with socket.socket(theirs.family, socket.SOCK_DGRAM) as asking:
                asking.connect((f"::ffff:{host}" if mapped else str(host), port))
                theirs.bind((asking.getsockname()[0], 0))
    except OSError:
        return False  # no route, or no right to look
    guard.asked[_inode(call)] = peer
    return True


def _inode(call: Call) -> str:
    """What is behind the descriptor of a call, as in `socket:[4711]`."""
    try:
        return os.readlink(f"/proc/{call.process.pid}/fd/{call.descriptor(0)}")
    except OSError:
        return ""


HANDLERS: dict[str, Handler] = {"connect": _connect, "sendto": _send}
