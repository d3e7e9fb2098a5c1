"""Schedules from a census: single faults one by one, then several at once, drawn by Hypothesis from (seed, index)."""

from __future__ import annotations

from chaosckpt.strategies.coverage import CensusPoint, aims_at_recovery, all_points, points, struck
from chaosckpt.strategies.drawing import STRATEGY_VERSION, draw, is_single
from chaosckpt.strategies.forecast import Atlas, Expected
from chaosckpt.strategies.schedules import schedules

__all__ = [
    "STRATEGY_VERSION",
    "Atlas",
    "CensusPoint",
    "Expected",
    "aims_at_recovery",
    "all_points",
    "draw",
    "is_single",
    "points",
    "schedules",
    "struck",
]
