"""The stall of one operation."""

from __future__ import annotations

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.stall import Stall
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.topology import Topology
from tests.faults.operations import trigger
from tests.strategies import dcp_model


def test_an_operation_blocks_until_the_peers_have_given_up(job):
    """It is held while every other rank ends by itself, and performed then."""
    Stall(trigger(rank=1)).inject(job)
    assert job.acts == ["await the peers of rank 1", "resume"]


def test_a_rank_without_peers_is_only_slow():
    """Nothing would go on meanwhile: in a job of one rank it isn't drawn."""
    census = dcp_model.census()
    for topology, drawn in ((Topology((1,)), False), (dcp_model.MAIN, True)):
        run = census.run(topology, None)
        assert run is not None
        context = FaultContext(scenario=dcp_model.scenario(), census=census, golden=GoldenIndex(run))
        assert (Stall.strategy(context) is not None) == drawn
