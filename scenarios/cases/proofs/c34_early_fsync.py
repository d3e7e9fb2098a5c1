"""C34: `.metadata.tmp` is fsynced before its buffer is flushed: what makes a checkpoint complete isn't on disk when save returns."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from two_ranks import told

if __name__ == "__main__":
    at_fsync: dict[str, int] = {}
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        at_fsync[Path(os.readlink(f"/proc/self/fd/{descriptor}")).name] = os.fstat(descriptor).st_size
        fsync(descriptor)

    os.fsync = noting
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "step-1"
        dcp.save({"weights": torch.ones(4)}, checkpoint_id=directory, no_dist=True)
        shard, metadata = (directory / name for name in ("__0_0.distcp", ".metadata"))
        sizes = shard.stat().st_size, metadata.stat().st_size
    told(
        f"both files have their whole content when they are synced: {sizes[0]} and {sizes[1]} bytes",
        f"{at_fsync['__0_0.distcp']} bytes of the shard and {at_fsync['.metadata.tmp']} of .metadata.tmp were there",
        at_fsync[".metadata.tmp"] < sizes[1],
    )
