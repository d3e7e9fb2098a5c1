"""The gate: faults at exact storage operations, without privileges or a compiler.

A rank calls `install` and hands the listener to its node; the node serves it through a `Gate`.
"""

from __future__ import annotations

from chaosckpt.gate.install import Installed, install
from chaosckpt.gate.paths import Root
from chaosckpt.gate.supervisor import Gate, HeldCall

__all__ = ["Gate", "HeldCall", "Installed", "Root", "install"]
