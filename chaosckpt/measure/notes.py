"""What a reader has to know of how the figures came about: how exact they are, and what they leave out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from chaosckpt.measure import figures
from chaosckpt.measure.measurement import Contention
from chaosckpt.measure.storage_use import Peaks
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text
from chaosckpt.training.metered import Metered

BESIDE = "Completion during training was checked once per step, so it is accurate to one step."
UNTOLD = "The saves of the target don't report completion: during training each save was awaited after the time of a save alone."
SYNCHRONOUS = "Each save is finished when save() returns, so saves cannot pile up and no backlog was measured."

UNLISTED = (
    "The target offers no list of its checkpoints: their number is the bytes on storage at the end divided by the size of the first "
    "checkpoint, and leftovers of old saves were not measured."
)
UNCOUNTED = "The kernel does not count all writes to this storage (as on tmpfs): bytes written are the bytes passed to write calls."


def of(ranks: Sequence[Metered], peaks: Peaks, contention: Sequence[Contention]) -> tuple[str, ...]:
    """The sentences."""
    return tuple(
        filter(
            None,
            [
                _filters(ranks),
                *_asynchronous(ranks),
                f"The peaks of temporary space and of /dev/shm are the maximum of {plural(peaks.looks, 'sample')} during "
                f"{plural(peaks.saves, 'save')}, so a shorter peak may have been overlooked.",
                _growth(ranks),
                "" if figures.counts_written_bytes(ranks) else UNCOUNTED,
                _cores(contention),
            ],
        )
    )


def _filters(ranks: Sequence[Metered]) -> str:
    """Nothing is measured under the gate; a container's own filter is inherited by everything in it."""
    inherited = max(metered.seccomp.filters for metered in ranks)
    if not any(metered.seccomp.mode for metered in ranks):
        return "Nothing ran under the gate: no measured rank had a system call filter."
    return (
        f"Nothing ran under the gate: every measured rank had only {plural(inherited, 'system call filter')}, which chaosckpt itself "
        "inherited, as in a container."
    )


def _asynchronous(ranks: Sequence[Metered]) -> list[str]:
    if not any(save.asynchronous for metered in ranks for save in metered.saves):
        return [SYNCHRONOUS]
    tells = all(overlap.tells for metered in ranks for overlap in metered.overlaps)
    return [BESIDE if tells else UNTOLD]


def _growth(ranks: Sequence[Metered]) -> str:
    if figures.listed(ranks) is None:
        return UNLISTED
    growth = figures.storage_growth(ranks)
    if growth is None:
        return "Leftovers of old saves were not measured: no checkpoint was replaced during the measurement."
    return f"Storage grew by {bytes_text(growth)} with each save that replaced an old checkpoint." if growth > 0 else ""


def _cores(contention: Sequence[Contention]) -> str:
    if not contention:
        return ""
    return f"The neighbours ran on this machine, so they shared not only its storage but also its {len(os.sched_getaffinity(0))} cores."
