"""C1: with `thread_count=2` an error of the second writer thread is lost: save returns, and the checkpoint can't be loaded."""

from __future__ import annotations

import errno
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from two_ranks import told


class FullForOneThread(FileSystem):
    """A disk that is full when the second writer thread opens its file. The main thread waits until it has."""

    def __init__(self) -> None:
        self.failed = threading.Event()

    @contextmanager
    def create_stream(self, path, mode):
        if threading.current_thread() is not threading.main_thread():
            self.failed.set()
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        self.failed.wait()
        with super().create_stream(path, mode) as stream:
            yield stream


if __name__ == "__main__":
    threading.excepthook = lambda error: print(f"(on stderr, from a thread that nobody asks: {error.exc_value})")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "step-1"
        writer = FileSystemWriter(directory, thread_count=2)
        writer.fs = FullForOneThread()
        dcp.save({"a": torch.ones(4), "b": torch.ones(8)}, storage_writer=writer, no_dist=True)
        left = sorted(path.name for path in directory.iterdir())
        try:
            dcp.load({"a": torch.zeros(4), "b": torch.zeros(8)}, checkpoint_id=directory, no_dist=True)
            seen = "nothing"
        except BaseException as error:  # torch's CheckpointException is no Exception
            seen = repr(getattr(error, "failures", {0: (error,)})[0][0])
    told(
        "save raises OSError ENOSPC",
        f"save returned and left {left}; load raised {seen}",
        seen != "nothing" and ".metadata" in left,
    )
