"""The failure boundary of a measurement: what the restart really had to do without, and what it was not put to the test with."""

from __future__ import annotations

from collections.abc import Set

from chaosckpt.measure.job import Job
from chaosckpt.model.topology import Topology

SURVIVES_LOCAL = {"node-loss", "local-storage-loss"}
NOT_TESTED = (
    "No crash, power loss or error of storage was put to the test: `chaosckpt fuzz` and `chaosckpt drill` do that."
)


def lose_local(job: Job, topology: Topology) -> None:
    """Node-local storage is gone in a fresh allocation; it is kept for a target that doesn't claim to do without it."""
    if job.guarantees & SURVIVES_LOCAL:
        job.drop_local(topology)


def words(guarantees: Set[str]) -> str:
    """What was tested, and what was not."""
    if guarantees & SURVIVES_LOCAL:
        local = "node-local storage emptied"
    else:
        local = "node-local storage kept, because the target claims neither node-loss nor local-storage-loss"
    return (
        "The job ended in order, with every save awaited. Its restart had new processes by exec, a directory for temporary files of "
        f"its own, shared storage kept and {local}. {NOT_TESTED}"
    )
