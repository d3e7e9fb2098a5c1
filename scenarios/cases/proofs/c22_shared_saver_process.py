"""C22, its sibling: two saves under way share the saver process's one pipe; the second is told safe by the first's answer."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._async_process_executor import _AsyncCheckpointProcess
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from two_ranks import told


class Slow(FileSystemWriter):
    """In the saver process: the second save writes when it is let."""

    def write_data(self, plan, planner):
        if self.path.name == "step-2":
            (self.path.parent / "go").read_bytes()  # a named pipe: blocks until somebody writes
        return super().write_data(plan, planner)


def save(root: Path, step: int):
    state = {"weights": torch.full((4,), float(step))}
    kind = AsyncCheckpointerType.PROCESS
    return dcp.async_save(state, storage_writer=Slow(root / f"step-{step}"), async_checkpointer_type=kind)


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    asked, answered = threading.Event(), threading.Event()
    receive = _AsyncCheckpointProcess._wait_for_response

    def in_this_order(self, timeout=None):
        """Both threads wait for an answer. Here the second one comes first to the pipe, as it may."""
        if timeout is not None or asked.is_set():
            return receive(self, timeout)
        asked.set()
        answered.wait()
        return receive(self, timeout)

    _AsyncCheckpointProcess._wait_for_response = in_this_order
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.mkfifo(root / "go")
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        first = save(root, 1)
        asked.wait()
        second = save(root, 2)
        second.result()
        complete = (root / "step-2" / ".metadata").exists()
        answered.set()
        (root / "go").write_bytes(b"")
        first.result()
        dist.destroy_process_group()
    told(
        "when the second future resolves, step-2 has its .metadata",
        f"the second future resolved; step-2 has its .metadata: {complete}",
        not complete,
    )
