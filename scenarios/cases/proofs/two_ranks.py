"""Two ranks of torch.distributed over gloo, for the proofs beside this file: no part of them is chaosckpt."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
import torch.multiprocessing as mp

warnings.filterwarnings("ignore")
Life = Callable[[int, Path], None]


def run(life: Life, directory: Path, timeout_seconds: float = 20.0) -> list[int]:
    """Run `life(rank, directory)` in two processes with a process group. Returns their exit codes (negative: the signal)."""
    with tempfile.TemporaryDirectory() as meeting:
        arguments = (life, directory, f"file://{meeting}/store", timeout_seconds)
        context = mp.get_context("spawn")
        processes = [context.Process(target=_rank, args=(rank, *arguments)) for rank in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return [process.exitcode or 0 for process in processes]


def _rank(rank: int, life: Life, directory: Path, meeting: str, timeout_seconds: float) -> None:
    warnings.filterwarnings("ignore")
    timeout = timedelta(seconds=timeout_seconds)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=timeout)
    life(rank, directory)


def told(expected: str, seen: str, shown: bool) -> None:
    """Print what was expected and what was seen; exit code 0 when the fault shows in this version of torch, 3 when not."""
    import torch

    print(f"torch {torch.__version__}")
    print(f"expected: {expected}")
    print(f"seen:     {seen}")
    print("the fault shows" if shown else "the fault does not show")
    sys.exit(0 if shown else 3)
