"""What is to be measured: the options of one measurement, and the points of its sweep over ranks and checkpoint sizes."""

from __future__ import annotations

import math

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.measure.measurement import FailureRate
from chaosckpt.model.phrasing import plural
from chaosckpt.model.scenario import Scenario, TopologySettings, WorkloadSettings
from chaosckpt.model.topology import Topology
from chaosckpt.report.quantities import bytes_text


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


OUTPUTS = 4
"""Of the model's head (chaosckpt/training/loop.py, which imports torch)."""
FLOAT_BYTES = 4
COPIES = 3
"""Of every parameter in a checkpoint: itself and AdamW's two moments."""


class SweepPoint(msgspec.Struct, frozen=True):
    """One job to be measured."""

    topology: Topology
    workload: WorkloadSettings

    @property
    def in_words(self) -> str:
        """For progress."""
        ranks = self.topology.world_size
        size = bytes_text(checkpoint_bytes(self.workload))
        return f"{plural(ranks, 'rank')} and {size} of tensors"


def points(options: MeasureOptions) -> tuple[SweepPoint, ...]:
    """The jobs to be measured, each once; the last one is the largest, whose figures are reported in full.

    Ranks are varied at the largest size, and sizes at the largest number of ranks. Raises UsageError.
    """
    settings, workload = options.scenario.topology, options.scenario.workload
    topologies = [topology_of(count, settings) for count in options.ranks] or [settings.topologies[0]]
    workloads = [sized(workload, size) for size in options.sizes] or [workload]
    largest = SweepPoint(topologies[-1], workloads[-1])
    varied = [SweepPoint(topology, workloads[-1]) for topology in topologies]
    varied += [SweepPoint(topologies[-1], sized_workload) for sized_workload in workloads]
    return (*dict.fromkeys(point for point in varied if point != largest), largest)


def topology_of(ranks: int, settings: TopologySettings) -> Topology:
    """So many ranks: a topology of the scenario's, or its largest one filled node by node. Raises UsageError beyond that."""
    for topology in settings.topologies:
        if topology.world_size == ranks:
            return topology
    largest = max(settings.topologies, key=lambda topology: topology.world_size)
    if ranks > largest.world_size:
        raise UsageError(
            f"--ranks {ranks} is more than the largest topology of the scenario, {largest} ({plural(largest.world_size, 'rank')}); "
            f"add one with {ranks} ranks to topology.ranks"
        )
    filled, left = [], ranks
    for count in largest.ranks:
        if left:
            filled.append(min(count, left))
            left -= filled[-1]
    return Topology(tuple(filled))


def sized(workload: WorkloadSettings, size_bytes: int) -> WorkloadSettings:
    """The workload whose checkpoint's shared tensors come nearest to this size. Raises UsageError for one that is too small."""
    least = checkpoint_bytes(msgspec.structs.replace(workload, hidden=1))
    if size_bytes < least:
        raise UsageError(
            f"--size {bytes_text(size_bytes)} is less than the smallest checkpoint of this job, {least} B "
            f"(workload.layers = {workload.layers}); name a larger one"
        )
    # COPIES * FLOAT_BYTES * (layers * (h² + h) + OUTPUTS * (h + 1)) + the optimizer's counters = size, solved for h.
    elements = (size_bytes - _counter_bytes(workload)) / (COPIES * FLOAT_BYTES)
    a, b, c = workload.layers, workload.layers + OUTPUTS, OUTPUTS - elements
    exact = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    candidates = [
        msgspec.structs.replace(workload, hidden=max(1, width)) for width in (math.floor(exact), math.ceil(exact))
    ]
    return min(candidates, key=lambda candidate: abs(checkpoint_bytes(candidate) - size_bytes))


def checkpoint_bytes(workload: WorkloadSettings) -> int:
    """Bytes of the tensors that all ranks share: parameters, AdamW's moments and its counters."""
    return COPIES * FLOAT_BYTES * parameters(workload) + _counter_bytes(workload)


def parameters(workload: WorkloadSettings) -> int:
    """How many numbers are trained."""
    return workload.layers * (workload.hidden**2 + workload.hidden) + OUTPUTS * (workload.hidden + 1)


def _counter_bytes(workload: WorkloadSettings) -> int:
    """AdamW counts the steps of each tensor: a weight and a bias in each layer and in the head."""
    return FLOAT_BYTES * 2 * (workload.layers + 1)
