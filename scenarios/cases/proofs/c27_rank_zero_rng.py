"""C27: per-rank tensors under one key: all ranks but one lose theirs, and load gives every rank the same one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from two_ranks import run, told


def save(rank: int, directory: Path) -> None:
    dcp.save({"rng": torch.full((4,), float(rank))}, checkpoint_id=directory / "step-1")


def load(rank: int, directory: Path) -> None:
    state = {"rng": torch.full((4,), -1.0)}
    dcp.load(state, checkpoint_id=directory / "step-1")
    (directory / f"rank-{rank}").write_text(str(state["rng"][0].item()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        codes = run(save, directory) + run(load, directory)
        got = [float((directory / f"rank-{rank}").read_text()) for rank in range(2)]
    told(
        "ranks 0 and 1 get back [0.0, 1.0], or save refuses one key with two values",
        f"exit codes {codes}; ranks 0 and 1 got {got}",
        got == [0.0, 0.0],
    )
