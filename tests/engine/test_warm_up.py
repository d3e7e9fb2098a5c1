"""The fork server's warm-up: what it practises and how it lays out its memory shows in nothing but speed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from chaosckpt.engine.forkserver import warm_up
from chaosckpt.engine.forkserver.server import collapsing
from chaosckpt.engine.wire.orders import NodeSettings
from chaosckpt.errors import PluginError
from chaosckpt.model.scenario import WorkloadSettings

PRACTISE = """
import os, torch
from chaosckpt.engine.forkserver import warm_up
torch.set_num_threads(1)
warm_up.warm_up()
print(len(os.listdir("/proc/self/task")))
"""


def test_practice_leaves_nothing_behind(tmp_path, monkeypatch):
    """After practising the random streams stand where they stood, and no file is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    states = random.getstate(), numpy.random.get_state(legacy=False), torch.get_rng_state()
    warm_up.warm_up()
    assert random.getstate() == states[0]
    numpy.testing.assert_equal(numpy.random.get_state(legacy=False), states[1])
    assert torch.equal(torch.get_rng_state(), states[2])
    assert list(tmp_path.glob("chaosckpt-*")) == []


def test_practice_starts_no_thread():
    """A process with one thread has one after practising, so that ranks can be forked from it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PRACTISE], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_huge_pages_keep_what_memory_holds():
    """Memory that was put into huge pages, where the kernel can, holds what it held."""
    held = [bytearray(os.urandom(1 << 20)) for _ in range(6)]
    copies = [bytes(one) for one in held]
    tried = list(collapsing())
    assert len(tried) == len(set(tried))
    assert all(address % (2 << 20) == 0 for address in tried)
    assert [bytes(one) for one in held] == copies


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("outstanding = 0", "`int` >= 1 - at `outstanding`"),
        ("outstanding = None", "at `outstanding`"),
        ("abandoned = -1", "`int` >= 0 - at `abandoned`"),
        ("keeps_rng = 'maybe'", "at `keeps_rng`"),
        ("guarantees = frozenset({'world-peace'})", "'world-peace' - at `guarantees"),
        ("nonces = ('[',)", "unterminated"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(tmp_path, claim, said):
    """Goal: what a target's class says of it is checked once, in a sentence with the claim, and never trips an invariant."""
    file = tmp_path / "claims.py"
    file.write_text(f"from chaosckpt.targets.torch_save import TorchSave\nclass Odd(TorchSave):\n    {claim}\n")
    with pytest.raises(PluginError, match="Odd declares impossible values") as caught:
        warm_up.target_facts(NodeSettings(target=f"{file}:Odd", options={}, workload=WorkloadSettings()))
    assert said in str(caught.value)
