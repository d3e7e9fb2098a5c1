"""The protocol's base class: a third party needs two methods, and the conveniences hold what they say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.targets import Ack, Chosen, Done, Intent, Nothing, Target
from tests.targets.target_job import TargetJob
from tests.training.ranks import run_ranks


class Smallest(Target):
    """A third party's: its own `__init__`, no call of the base's, and the two methods."""

    def __init__(self, context):
        self.remembered = context.rank

    def save(self, state, step):
        return Done()

    def recover(self, state, intent):
        return Nothing()


class WithOptions(Smallest):
    name = "with-options"
    options = {"keep": 2}  # noqa: RUF012  # as a third party would write it


def test_two_methods_make_a_target(tmp_path):
    """Context, tiers and the defaults are there without a word from the subclass."""
    target = TargetJob(tmp_path, Smallest).target(0, 1, 0)
    assert target.save(None, 1).wait() == Ack("shared")  # type: ignore[arg-type]
    assert target.recover(None, Intent.START) == Nothing()  # type: ignore[arg-type]
    assert (target.rank, target.world_size, target.shared, target.local) == (
        0,
        1,
        tmp_path / "shared",
        tmp_path / "node-0",
    )
    assert target.guarantees == {"process-crash"}
    target.close()


def test_options_have_defaults_and_types(tmp_path):
    """An unknown option and one of another type are refused with the name, the value and what would do."""
    assert TargetJob(tmp_path, WithOptions).target(0, 1, 0).option("keep") == 2
    assert TargetJob(tmp_path, WithOptions, keep=5).target(0, 1, 0).option("keep") == 5
    with pytest.raises(UsageError, match=r"target\.options.kep is not an option of with-options; its options: keep"):
        TargetJob(tmp_path, WithOptions, kep=5).target(0, 1, 0)
    with pytest.raises(UsageError, match=r"target\.options.keep is 'all'; it must be a value of type int"):
        TargetJob(tmp_path, WithOptions, keep="all").target(0, 1, 0).option("keep")


def test_values_travel_between_ranks(tmp_path):
    """gather gives every rank's value in order, broadcast rank 0's, on_rank_zero what rank 0 alone computed."""
    target_job = TargetJob(tmp_path, Smallest)

    def life(rank: int):
        target = target_job.target(rank, 2, 0)
        target.barrier()
        return target.gather(rank * 10), target.broadcast(rank + 1), target.on_rank_zero("x", lambda: rank + 7)

    assert run_ranks(2, life).results == [([0, 10], 1, 7)] * 2


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_on_one_rank_is_raised_on_all(tmp_path, failing):
    """Every rank raises the same text, with what was done and which rank failed how."""
    target_job = TargetJob(tmp_path, Smallest)

    def life(rank: int):
        def action() -> int:
            if rank == failing:
                raise OSError(5, "Input/output error")
            return rank

        return target_job.target(rank, 2, 0).together("reading /some/path", action)

    texts = {failure.text for failure in run_ranks(2, life).failures}
    assert texts == {f"failed reading /some/path: rank {failing}: OSError: [Errno 5] Input/output error"}


def test_an_error_on_rank_zero_is_raised_on_all(tmp_path):
    """So it is for what rank 0 does alone; the other ranks don't wait for an answer that never comes."""
    target_job = TargetJob(tmp_path, Smallest)

    def life(rank: int) -> int:
        return target_job.target(rank, 2, 0).on_rank_zero("listing /x", lambda: [1][1])

    ranks = run_ranks(2, life)
    assert {failure.text for failure in ranks.failures} == {
        "failed listing /x: rank 0: IndexError: list index out of range"
    }


def test_empty_hands_are_fine_at_the_start_only(tmp_path):
    """`nothing` answers for the intent."""
    target = TargetJob(tmp_path, Smallest).target(0, 1, 0)
    assert target.nothing(Intent.START, "/x/step-*") == Nothing()
    with pytest.raises(Exception, match="looked for /x/step-"):
        target.nothing(Intent.RESUME, "/x/step-*")


def test_answers_are_values():
    """Verdicts compare them."""
    assert Chosen(4) == Chosen(4) != Chosen(2)


def test_the_protocol_costs_no_torch():
    """The harness imports the protocol in processes that never train."""
    program = "import sys, chaosckpt.targets; print('torch' in sys.modules, 'numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]


def test_importing_every_target_leaves_a_process_fit_to_fork():
    """No thread is started, no random number drawn, and CUDA stays uninitialised."""
    program = """
import os, random, torch, numpy
torch.manual_seed(1); random.seed(1); numpy.random.seed(1)
before = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
from chaosckpt.targets import dcp, dcp_async, dcp_overwrite, torch_save, torch_save_atomic, two_tier
from chaosckpt.targets.canaries import asynchronous, mixing
from chaosckpt.training import digest, loop
after = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
print(torch.equal(before[0], after[0]), before[1:] == after[1:], len(os.listdir("/proc/self/task")), torch.cuda.is_initialized())
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert shown.stdout.split() == ["True", "True", "1", "False"]
