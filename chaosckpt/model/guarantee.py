"""Guarantees: what a target promises that an acknowledged checkpoint survives."""

from __future__ import annotations

from typing import Literal

Guarantee = Literal["process-crash", "node-loss", "local-storage-loss", "power-loss", "world-size-change"]
"""process-crash: any rank, or all, killed at any operation. node-loss: a node and its node-local storage gone for ever.
local-storage-loss: node-local storage empty at the restart. power-loss: what was not synced may be gone.
world-size-change: recovery with another number of ranks."""
