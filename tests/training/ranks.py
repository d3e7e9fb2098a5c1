"""Runs a function on several ranks: real processes forked from this warm one, in a real gloo group."""

from __future__ import annotations

import importlib
import os
import pickle
import selectors
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import torch.distributed as dist

from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.training.loop import Job, build, train_step

DEADLINE_SECONDS = 60
Result = TypeVar("Result")


class Failure(NamedTuple):
    """How a rank failed: the error's type and text, and its traceback."""

    kind: str
    text: str
    trace: str


class Killed(NamedTuple):
    """A rank that ended without a word: by exit code, or (negative) by signal."""

    code: int


class Ranks(Generic[Result]):
    """The outcome of each rank, in the order of ranks."""

    def __init__(self, outcomes: list[Result | Failure | Killed]) -> None:
        self.outcomes = outcomes

    @property
    def results(self) -> list[Result]:
        """Every rank's result; fails the test, with the traceback, when a rank failed."""
        for rank, outcome in enumerate(self.outcomes):
            assert not isinstance(outcome, Killed), f"rank {rank} ended by itself: {outcome}"
            assert not isinstance(outcome, Failure), f"rank {rank}: {outcome.trace}"
        return self.outcomes  # type: ignore[return-value]

    @property
    def failures(self) -> list[Failure]:
        """Every rank's failure; fails the test when a rank returned."""
        for rank, outcome in enumerate(self.outcomes):
            assert isinstance(outcome, Failure), f"rank {rank} did not fail but gave {outcome!r}"
        return self.outcomes  # type: ignore[return-value]


def run_ranks(world_size: int, function: Callable[[int], Result], group: bool = True) -> Ranks[Result]:
    """`function(rank)` on each rank. Results travel by pickle. A rank that has not ended by the deadline is killed.

    Without `group` no process group is initialised: for a lone rank.
    """
    with tempfile.TemporaryDirectory(prefix="ranks-") as directory:
        rendezvous = Path(directory) / "rendezvous"
        readers, processes = [], []
        for rank in range(world_size):
            reading, writing = os.pipe()
            process = os.fork()
            if process == 0:
                _child(rank, world_size, rendezvous if group else None, writing, function)
            os.close(writing)
            readers.append(reading)
            processes.append(process)
        try:
            payloads = _drain(readers)
        finally:
            for process in processes:
                # A rank that has reported is on its way out; one that hasn't hangs.
                os.kill(process, signal.SIGKILL)
            codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    return Ranks(
        [pickle.loads(payload) if payload else Killed(code) for payload, code in zip(payloads, codes, strict=True)]
    )


def _child(rank: int, world_size: int, rendezvous: Path | None, writing: int, function: Callable[[int], Any]) -> None:
    try:
        torch.set_num_threads(1)
        if rendezvous is not None:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{rendezvous}",
                rank=rank,
                world_size=world_size,
                timeout=timedelta(seconds=DEADLINE_SECONDS),
            )
        outcome: Any = function(rank)
    except BaseException as error:  # A child must never return into pytest; the parent shows the error.
        outcome = Failure(type(error).__name__, str(error), traceback.format_exc())
    with os.fdopen(writing, "wb") as pipe:
        pickle.dump(outcome, pipe)
    os._exit(0)


def _drain(readers: list[int]) -> list[bytes]:
    """What each pipe held at its end, or had held by the deadline since the last byte on any."""
    payloads = [b"" for _ in readers]
    with selectors.DefaultSelector() as selector:
        for index, reader in enumerate(readers):
            selector.register(reader, selectors.EVENT_READ, index)
        while selector.get_map():
            ready = selector.select(DEADLINE_SECONDS)
            if not ready:
                break
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                payloads[key.data] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    for reader in readers:
        os.close(reader)
    return payloads


def rehearse() -> None:
    """Import here what one whole life of a rank imports lazily, so that no later child has to."""

    def life(rank: int) -> list[str]:
        for strategy in ("ddp", "fsdp2"):
            job = build(WorkloadSettings(strategy=strategy), rank, 2, 0)
            train_step(job)
            job.state.load_sharded_state_dict(job.state.sharded_state_dict())
        return sorted(sys.modules)

    torch.set_num_threads(1)  # a thread in this process would be missing in its children
    for name in run_ranks(2, life).results[0]:
        if name.startswith("torch.") and name not in sys.modules:
            importlib.import_module(name)


def job_of(world_size: int, rank: int, attempt: int = 0, **settings: Any) -> Job:
    """A job of the tiny default model."""
    return build(WorkloadSettings(**settings), rank, world_size, attempt)
