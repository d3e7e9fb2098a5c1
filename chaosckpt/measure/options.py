"""What is to be measured: a scenario, how often, at which numbers of ranks and sizes, beside how many neighbours."""

from __future__ import annotations

import msgspec

from chaosckpt.model.measurement import FailureRate
from chaosckpt.model.scenario import Scenario


class MeasureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Plain values of the command line.

    `ranks` and `sizes` (bytes of the tensors of one checkpoint) are ascending; empty: the scenario's own. The figures are those of the
    largest of both, the others are points of a sweep. `failure_rate` None: nobody named one.
    """

    scenario: Scenario
    ranks: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    repeats: int = 5
    warm_up: int = 1
    neighbours: int = 1
    failure_rate: FailureRate | None = None
    tolerated_loss_seconds: float | None = None
