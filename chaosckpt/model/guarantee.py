"""Guarantees: what a target promises that an acknowledged checkpoint survives."""

from __future__ import annotations

from typing import Literal, get_args

Guarantee = Literal["process-crash", "node-loss", "local-storage-loss", "power-loss", "world-size-change", "integrity"]
"""One promise of a target.

- process-crash: ranks are killed at any moment; what they wrote stays, synced or not
- node-loss: all processes of a node die, and its node-local storage with them
- local-storage-loss: a node's node-local storage is empty at the next start, its processes having ended somehow
- power-loss: what was not synced, file or directory entry, may be gone
- world-size-change: parameters, optimizer, scheduler and step are recovered with another number of ranks
- integrity: files damaged at rest are noticed: a damaged checkpoint is passed over or refused, never loaded
"""

GUARANTEES: frozenset[Guarantee] = frozenset(get_args(Guarantee))
