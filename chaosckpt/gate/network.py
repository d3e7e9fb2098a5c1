"""Calls that name a peer on the network: answered only by whether that peer may be reached."""

from __future__ import annotations

import errno

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Reply
from chaosckpt.gate.tree import Handler, Tree

_LONGEST_ADDRESS = 128


def _reach(tree: Tree, call: Call, address: int, length: int) -> Reply:
    if tree.guard is None or not call.arguments[address]:
        return CONTINUE
    size = min(call.word(length), _LONGEST_ADDRESS)
    peer = tree.memory.read(call.tid, call.arguments[address], size)
    return CONTINUE if tree.guard.reaches(peer) else -errno.ENETUNREACH


HANDLERS: dict[str, Handler] = {
    "connect": lambda tree, call: _reach(tree, call, 1, 2),
    "sendto": lambda tree, call: _reach(tree, call, 4, 5),
}
"""System call -> handler. `k.NUMBERS` says which of them this machine has."""
assert set(HANDLERS) <= set(k.TABLES["x86_64"])
