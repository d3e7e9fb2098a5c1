"""The checkpointer that is measured: `dcp`, with a stage boundary in the middle of its save and a clock around it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemWriter

from chaosckpt.targets.api import Pending
from chaosckpt.targets.dcp import Dcp
from chaosckpt.training.state import TrainState


class _MarkingWriter(FileSystemWriter):
    """Marks a stage when the save is planned and its directory made, just before this rank's shard is written."""

    target: BoundedDcp

    def write_data(self, *arguments: Any, **named: Any) -> torch.futures.Future[Any]:
        self.target.stage("persist")
        written: torch.futures.Future[Any] = super().write_data(*arguments, **named)
        return written


class BoundedDcp(Dcp):
    """`dcp` with a boundary in mid-save, where a job without a gate can be held and killed as one with a gate can."""

    def writer(self, directory: Path) -> FileSystemWriter:
        writer = _MarkingWriter(directory, thread_count=1)
        writer.target = self
        return writer


class TimedDcp(Dcp):
    """`dcp` that says on stdout, which goes to the rank's log, how long each save took."""

    def save(self, state: TrainState, step: int) -> Pending:
        self.barrier()
        started = time.perf_counter()
        pending = super().save(state, step)
        sys.stdout.write(f"saved in {time.perf_counter() - started:.9f}\n")  # benchmarks/save.py reads it
        return pending
