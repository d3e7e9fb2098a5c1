"""C30: a checkpoint with a key for every rank, loaded by more ranks: which error, and does partial loading pass over it?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from two_ranks import run, told


def load(rank: int, directory: Path) -> None:
    for name, planner in (("strict", None), ("partial", DefaultLoadPlanner(allow_partial_load=True))):
        state = {"weights": torch.zeros(4), f"rng{rank}": torch.full((4,), -1.0)}
        try:
            dcp.load(state, checkpoint_id=directory / "step-1", planner=planner)
            seen = f"loaded, rng[0] = {state[f'rng{rank}'][0].item()}"
        except BaseException as error:  # torch's CheckpointException is no Exception
            seen = type(error).__name__ + ": " + "; ".join(str(cause[0]) for cause in error.failures.values())
        (directory / f"{name}-{rank}").write_text(seen)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        dcp.save({"weights": torch.ones(4), "rng0": torch.zeros(4)}, checkpoint_id=directory / "step-1", no_dist=True)
        run(load, directory)
        strict, partial = ((directory / f"{name}-1").read_text() for name in ("strict", "partial"))
    told(
        "the rank without a key of its own is told so, strict or not",
        f"rank 1 strict: {strict} | partial: {partial}",
        partial.startswith("loaded"),
    )
