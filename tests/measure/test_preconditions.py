"""What can't be measured here is refused before anything is begun, in one sentence with the value and the next step."""

from __future__ import annotations

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.measure import preconditions as checks
from chaosckpt.measure.sweep import MeasureOptions, SweepPoint, checkpoint_bytes, points, sized
from chaosckpt.model.scenario import CommandSettings, Scenario, StorageSettings, TargetSettings, WorkloadSettings
from chaosckpt.model.topology import Topology

POINT = SweepPoint(Topology((2,)), sized(WorkloadSettings(), 100_000_000))


def test_a_size_beyond_the_memory():
    """Memory of the job and its neighbours together is compared with what is available."""
    needed = checks.memory_bytes(POINT)
    checks.check_memory(POINT, 1, needed)
    with pytest.raises(
        UsageError, match=r"100 MB on 2 ranks needs about .* of memory, and .* are available; name a smaller --size$"
    ):
        checks.check_memory(POINT, 1, needed - 1)
    with pytest.raises(UsageError, match=r"for the job and 1 neighbour, .*fewer --neighbours"):
        checks.check_memory(POINT, 2, needed)


def test_sharded_models_need_less():
    """Under fsdp2 the ranks share the model out among themselves."""
    sharded = SweepPoint(POINT.topology, sized(WorkloadSettings(strategy="fsdp2"), 100_000_000))
    assert checks.memory_bytes(sharded) < checks.memory_bytes(POINT)


def test_a_size_beyond_the_disk():
    """Two kept checkpoints and the one that is being written have to fit, for each job."""
    needed = 3 * checkpoint_bytes(POINT.workload)
    checks.check_disk(POINT, 1, needed, "/data")
    with pytest.raises(
        UsageError, match=r"3 checkpoints of 100 MB need 300 MB, and .* are free in /data; name a smaller --size"
    ):
        checks.check_disk(POINT, 1, needed - 1, "/data")


def test_a_command_has_no_saves_to_time():
    """An unmodified command can be fuzzed, not measured."""
    options = MeasureOptions(scenario=Scenario(name="train", command=CommandSettings(argv=("python", "train.py"))))
    with pytest.raises(UsageError, match="train runs an unmodified command"):
        checks.check(options, ())


def test_storage_that_is_not_there(tmp_path):
    """The scenario's own directory is named."""
    storage = StorageSettings(shared=str(tmp_path / "nowhere"))
    options = MeasureOptions(scenario=Scenario(name="s", target=TargetSettings(use="dcp"), storage=storage))
    with pytest.raises(UsageError, match=r"storage\.shared = .*nowhere.*does not exist; create the directory"):
        checks.check(options, points(options))


def test_available_memory_is_some():
    """Of this machine, or of the control group that the test runs in."""
    assert checks.available_memory_bytes() > 0
