"""C25: one rank's `state_dict()` raises inside dcp.save: the other waits in a collective, without a word, for the timeout."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from two_ranks import run, told

TIMEOUT_SECONDS = 2.0


class Model:
    """What DCP calls Stateful; on rank 1 it can't be read."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def state_dict(self) -> dict[str, torch.Tensor]:
        if self.rank == 1:
            raise ValueError("rank 1 can't give its state")
        return {"weights": torch.ones(4)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        pass


def life(rank: int, directory: Path) -> None:
    try:
        dcp.save({"model": Model(rank)}, checkpoint_id=directory / "step-1")
        seen = "save returned"
    except BaseException as error:  # torch's CheckpointException is no Exception
        seen = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    (directory / f"rank-{rank}").write_text(seen)
    # Rank 1 lives on, as where the error is caught and logged: else its closed sockets would end rank 0's wait at once.
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("rank 0 is done", "")
    else:
        store.wait(["rank 0 is done"], timedelta(seconds=30))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        run(life, directory, TIMEOUT_SECONDS)
        seen = [(directory / f"rank-{rank}").read_text() for rank in range(2)]
    told("both ranks raise, and name rank 1's ValueError", f"{seen}", "can't give" not in seen[0])
