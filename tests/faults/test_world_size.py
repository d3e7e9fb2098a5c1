"""A restart with another number of ranks."""

from __future__ import annotations

from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.topology import Topology


def test_the_new_world_size_takes_the_place_of_any(job):
    """The attempt starts in the new topology, whatever the one before was."""
    fault = WorldSize(Topology((1,)))
    assert fault.topology(Topology((1, 1))) == Topology((1,))
    assert fault.prepare(job) == "the job starts as 1, 1 rank"
