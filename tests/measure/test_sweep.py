"""A sweep's points: sizes become workloads of that size, numbers of ranks become topologies, each point once."""

from __future__ import annotations

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.measure.sweep import MeasureOptions, checkpoint_bytes, points, sized, topology_of
from chaosckpt.model.scenario import Scenario, TargetSettings, TopologySettings, WorkloadSettings
from chaosckpt.model.topology import Topology
from chaosckpt.training.loop import build, train_step
from chaosckpt.training.meter import logical_bytes


def options(ranks: tuple[int, ...] = (), sizes: tuple[int, ...] = ()) -> MeasureOptions:
    topology = TopologySettings(ranks=((1, 1), (2, 2)))
    scenario = Scenario(name="s", target=TargetSettings(use="dcp"), topology=topology)
    return MeasureOptions(scenario=scenario, ranks=ranks, sizes=sizes)


def test_without_a_sweep_there_is_the_scenario_itself():
    """Its main topology, and its workload."""
    (point,) = points(options())
    assert point.topology == Topology((1, 1))
    assert point.workload == WorkloadSettings()


def test_ranks_and_sizes_are_varied_one_at_a_time():
    """The largest of both comes last, and is in the list once."""
    found = points(options(ranks=(1, 2, 4), sizes=(10_000, 1_000_000)))
    assert [(point.topology.world_size, point.workload.hidden > 100) for point in found] == [
        (1, True),
        (2, True),
        (4, False),
        (4, True),
    ]


def test_a_topology_of_the_scenario_is_taken_first():
    """Two ranks are 1+1 here, four are 2+2, and three fill the largest node by node."""
    settings = TopologySettings(ranks=((1, 1), (2, 2)))
    assert [str(topology_of(count, settings)) for count in (1, 2, 3, 4)] == ["1", "1+1", "2+1", "2+2"]


def test_ranks_beyond_the_topology_are_refused():
    """With the number, the largest topology, and what to change."""
    with pytest.raises(
        UsageError, match=r"--ranks 5 is more than the largest topology .* 2\+2 \(4 ranks\).*topology\.ranks"
    ):
        points(options(ranks=(5,)))


@pytest.mark.parametrize("size", [200_000, 1_000_000, 64_000_000, 512_000_000])
@pytest.mark.parametrize("layers", [1, 2, 5])
def test_a_size_is_met(size, layers):
    """The checkpoint of the workload is within one unit of width of what was asked for."""
    workload = sized(WorkloadSettings(layers=layers), size)
    assert abs(checkpoint_bytes(workload) - size) / size < 0.02


def test_a_size_too_small_is_refused():
    """No job has less than a width of one."""
    with pytest.raises(UsageError, match="less than the smallest checkpoint of this job, "):
        sized(WorkloadSettings(), 10)


@pytest.mark.parametrize(("hidden", "layers"), [(1, 1), (16, 2), (7, 3)])
def test_the_size_is_that_of_the_real_job(hidden, layers):
    """What is computed here without torch is what the real job's tensors take."""
    settings = WorkloadSettings(hidden=hidden, layers=layers)
    job = build(settings, rank=0, world_size=1, attempt=0)
    train_step(job)
    assert checkpoint_bytes(settings) == logical_bytes(job.state)[0]
