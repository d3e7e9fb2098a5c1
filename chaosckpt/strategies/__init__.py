"""Schedules from a census: single faults one by one, then several at once, drawn by Hypothesis from (seed, index)."""

from __future__ import annotations

from chaosckpt.strategies.coverage import CensusPoint, aims_at_recovery, all_points, covered, points
from chaosckpt.strategies.drawing import STRATEGY_VERSION, draw, is_single
from chaosckpt.strategies.prediction import CensusIndex, PredictedRun
from chaosckpt.strategies.schedules import schedules

__all__ = [
    "STRATEGY_VERSION",
    "CensusIndex",
    "CensusPoint",
    "PredictedRun",
    "aims_at_recovery",
    "all_points",
    "covered",
    "draw",
    "is_single",
    "points",
    "schedules",
]
