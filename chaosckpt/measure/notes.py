"""What a reader has to know of how the figures came about: how exact they are, and what they leave out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from chaosckpt.measure import figures
from chaosckpt.measure.measurement import Contention
from chaosckpt.measure.storage_use import Peaks
from chaosckpt.report.quantities import bytes_text
from chaosckpt.training.metered import Metered

BESIDE = "what a save takes beside training was looked at after each step, so that it is exact to one step only"
UNTOLD = "the target's saves don't tell whether they are finished: beside training each was awaited after as long as one takes alone"
SYNCHRONOUS = "each save is finished when `save` returns, so that none can pile up and there is no backlog to measure"

UNLISTED = (
    "the target offers no list of its checkpoints: their number is what lay on storage at the end over the size of the first one, and "
    "whether saves leave something behind can't be told"
)
UNCOUNTED = "the kernel does not count all that is written to this storage, as with tmpfs: bytes written are those asked of write calls"


def of(ranks: Sequence[Metered], peaks: Peaks, contention: Sequence[Contention]) -> tuple[str, ...]:
    """The sentences, without a full stop."""
    return tuple(
        filter(
            None,
            [
                _filters(ranks),
                *_asynchronous(ranks),
                f"peak temporary space, and /dev/shm, are the most of {peaks.looks} looks while {peaks.saves} saves ran: "
                "a shorter peak is missed",
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
        return "nothing ran under the gate: every measured rank saw no system call filter on itself"
    return (
        f"nothing ran under the gate: every measured rank saw only the {inherited} system call filter(s) under which chaosckpt runs "
        "itself, as in a container"
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
        return "whether saves leave something behind can't be told: none has replaced another one"
    return f"storage grew by {bytes_text(growth)} with each save that retired another one" if growth > 0 else ""


def _cores(contention: Sequence[Contention]) -> str:
    if not contention:
        return ""
    return f"neighbours ran on this machine: they share its {len(os.sched_getaffinity(0))} cores, too, not its storage alone"
