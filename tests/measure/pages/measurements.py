"""Measurements that several tests of the reports and of the comparison show."""

from __future__ import annotations

from msgspec.structs import replace

from chaosckpt.measure.failure_rate import given
from chaosckpt.measure.file_system import describe, parse
from chaosckpt.measure.interval import advise, measured_inputs
from chaosckpt.measure.measurement import (
    Backlog,
    Capacity,
    Contention,
    Measurement,
    OutstandingAt,
    Provenance,
    RankFigures,
    RankRestart,
    Restart,
    ScalePoint,
    Spread,
    StorageLatency,
)


def spread(*samples: float) -> Spread:
    return Spread(samples)


def rank(number: int, factor: float = 1.0) -> RankFigures:
    return RankFigures(
        rank=number,
        stall_seconds=spread(0.2 * factor, 0.25 * factor, 0.21 * factor),
        completion_seconds=spread(2.0 * factor, 2.5 * factor, 2.1 * factor),
        completion_while_training_seconds=spread(2.4 * factor, 2.6 * factor, 2.5 * factor),
        step_seconds=spread(0.10, 0.11, 0.10),
        step_seconds_during_save=spread(0.13, 0.14, 0.125),
        waited_seconds=spread(0.0, 0.4, 0.5),
        written_bytes=spread(50e6, 50e6, 51e6),
        written_chars=spread(50e6, 50e6, 50e6),
        write_operations=spread(120, 120, 121),
        read_bytes=spread(48e6),
        read_chars=spread(50e6),
        read_operations=spread(90),
        peak_rss_bytes=900_000_000,
        bytes_per_second=spread(25e6 / factor, 20e6 / factor, 24e6 / factor),
        seconds_per_operation=spread(0.017 * factor, 0.021 * factor, 0.0175 * factor),
    )


def restart(cache, load: float) -> Restart:
    def of_rank(number: int) -> RankRestart:
        return RankRestart(
            rank=number,
            process_start_seconds=spread(3.0, 3.1),
            discover_seconds=spread(0.01, 0.02),
            load_seconds=spread(load, load + 0.1),
            first_step_seconds=spread(0.3, 0.31),
            total_seconds=spread(3.31 + load, 3.53 + load),
        )

    one = of_rank(0)
    return Restart(
        cache=cache,
        process_start_seconds=one.process_start_seconds,
        discover_seconds=one.discover_seconds,
        load_seconds=one.load_seconds,
        first_step_seconds=one.first_step_seconds,
        total_seconds=one.total_seconds,
        ranks=(one, of_rank(1)),
        note="pages of the files were dropped first" if cache == "cold" else "",
    )


MOUNTS = parse("1 0 0:1 / / rw,relatime - ext4 /dev/vda rw,discard\n2 1 0:2 / /shm rw - tmpfs tmpfs rw,size=1g")
CAPACITY = Capacity(
    logical_bytes=96_000_000,
    written_bytes=101_000_000,
    apparent_bytes=100_000_000,
    allocated_bytes=100_003_840,
    retained_generations=2,
    peak_temporary_bytes=100_000_000,
    peak_rss_bytes=900_000_000,
    staging_bytes=99_000_000,
    peak_shm_bytes=0,
    leaked_bytes=0,
    free_bytes=20_000_000_000,
)
FIGURES = (rank(0), rank(1, 1.5))
RESTARTS = (restart("cold", 1.2), restart("warm", 0.4))
ALONE = spread(2.4, 2.6)
"""Of the saves just before those beside neighbours; others than those of the figures."""
FULL = Measurement(
    provenance=Provenance(
        date="2026-03-01T09:30:00+00:00", host="node17", command="chaosckpt measure dcp-async --neighbours 2"
    ),
    scenario="dcp-async",
    target="dcp-async",
    strategy="fsdp2",
    ranks=2,
    seed=7,
    repeats=3,
    warm_up=1,
    asynchronous=True,
    figures=FIGURES,
    restarts=RESTARTS,
    backlog=Backlog(
        interval_seconds=1.0,
        completion_seconds=spread(2.4, 2.6),
        peak_outstanding=2,
        waited_seconds=spread(0.9, 1.1),
        timeline=(
            OutstandingAt(seconds=0.0, saves=1),
            OutstandingAt(seconds=1.0, saves=2),
            OutstandingAt(seconds=2.5, saves=1),
            OutstandingAt(seconds=4.0, saves=0),
        ),
        grows=False,
    ),
    capacity=CAPACITY,
    contention=(
        Contention(
            neighbours=1, completion_seconds=spread(4.0, 4.5), alone_seconds=ALONE, ratio=1.7, neighbour_ratio=1.5
        ),
        Contention(
            neighbours=2, completion_seconds=spread(6.0, 6.5), alone_seconds=ALONE, ratio=2.5, neighbour_ratio=2.2
        ),
    ),
    scale=(
        ScalePoint(
            ranks=1,
            checkpoint_bytes=1_000_000,
            stall_seconds=spread(0.1),
            completion_seconds=spread(0.5, 0.6),
            restart_seconds=spread(4.0),
        ),
        ScalePoint(
            ranks=2,
            checkpoint_bytes=64_000_000,
            stall_seconds=spread(0.2),
            completion_seconds=spread(1.5, 1.6),
            restart_seconds=spread(4.5),
            slowest_rank=1,
        ),
        ScalePoint(
            ranks=2,
            checkpoint_bytes=1_000_000,
            stall_seconds=spread(0.1),
            completion_seconds=spread(0.7),
            slowest_rank=1,
        ),
    ),
    latencies=(
        StorageLatency(
            rank=0,
            tier="shared",
            write_seconds=spread(0.001),
            fsync_seconds=spread(0.02, 0.03),
            rename_seconds=spread(0.0001),
            stat_seconds=spread(2e-6),
        ),
    ),
    advice=advise(measured_inputs(FIGURES, RESTARTS, CAPACITY, given(24 * 3600.0), tolerated_loss_seconds=1800.0)),
    failure_boundary="loss of all processes, and of node-local storage",
    file_systems=(describe("shared", "/runs", MOUNTS), describe("local", "/shm/run", MOUNTS)),
    versions={"python": "3.11.7", "torch": "2.13.0"},
    filters={"0": 0, "1": 0},
    notes=("peak memory is read every 10 ms",),
)
"""An asynchronous save of two ranks with everything measured; rank 1 is the slower one."""
BARE = replace(
    FULL,
    asynchronous=False,
    figures=(
        replace(
            FIGURES[0],
            completion_while_training_seconds=None,
            step_seconds_during_save=None,
            waited_seconds=None,
            read_bytes=None,
            read_chars=None,
            read_operations=None,
        ),
    ),
    ranks=1,
    restarts=(),
    backlog=None,
    contention=(),
    scale=(),
    latencies=(),
    file_systems=(),
    versions={},
    notes=(),
)
"""As little as a measurement can hold."""
