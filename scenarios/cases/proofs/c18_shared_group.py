"""C18: async_save and training on one process group: their collectives meet in different orders, and neither gets its own."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed import distributed_c10d
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from two_ranks import run, told

TIMEOUT_SECONDS = 3.0


class Ordered(FileSystemWriter):
    """On rank 0 the saver thread begins its collectives when training has begun its own; on rank 1 it is the other way round."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.training_posted, self.saver_posted = threading.Event(), threading.Event()

    def prepare_local_plan(self, plan):
        if self.rank == 0:
            self.training_posted.wait()
        return super().prepare_local_plan(plan)


def life(rank: int, directory: Path) -> None:
    writer = Ordered(directory / "step-1")
    all_gather = distributed_c10d.all_gather

    def noted(tensors, tensor, group=None):
        work = all_gather(tensors, tensor, group=group, async_op=True)
        writer.saver_posted.set()
        work.wait()

    distributed_c10d.all_gather = noted
    saving = dcp.async_save({"weights": torch.ones(4)}, storage_writer=writer)
    if rank == 1:
        writer.saver_posted.wait()
    gradient = torch.full((4,), float(rank + 1))
    seen = []
    try:
        work = dist.all_reduce(gradient, async_op=True)
        writer.training_posted.set()
        work.wait()
        seen.append(f"all_reduce gave {gradient[0].item()}")
    except RuntimeError as error:
        seen.append(f"all_reduce: {str(error).splitlines()[0][-60:]}")
    try:
        saving.result()
        seen.append("the save succeeded")
    except BaseException as error:  # torch's CheckpointException is no Exception
        seen.append(f"the save: {type(error).__name__}: {str(error).splitlines()[0][-60:]}")
    (directory / f"rank-{rank}").write_text(", ".join(seen))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        codes = run(life, directory, TIMEOUT_SECONDS)
        files = [directory / f"rank-{rank}" for rank in range(2)]
        seen = [file.read_text() if file.exists() else "died" for file in files]
    right = "all_reduce gave 3.0, the save succeeded"
    told(f"both ranks: {right}", f"exit codes {codes}; {seen}", seen != [right, right])
