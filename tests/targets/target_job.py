"""A job under a target: train and save, or recover and train on, with real ranks and real files."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chaosckpt.model.digest import StateDigest
from chaosckpt.targets import Chosen, Context, Intent, Nothing, Target
from chaosckpt.targets.dcp import Dcp
from chaosckpt.targets.dcp_async import DcpAsync
from chaosckpt.targets.dcp_overwrite import DcpOverwrite
from chaosckpt.targets.torch_save import TorchSave
from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.targets.torch_save_checked import TorchSaveChecked
from chaosckpt.targets.two_tier import TwoTier
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import train_step
from tests.training.ranks import Ranks, job_of, run_ranks

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"


def tutorial_target(file: str, name: str) -> type[Target]:
    """A class from a page of the tutorial, as a third party's file."""
    spec = importlib.util.spec_from_file_location(file, TUTORIAL / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: type[Target] = getattr(module, name)
    return found


MyTarget = tutorial_target("my_target", "MyTarget")
BUILT_IN: list[type[Target]] = [
    TorchSave,
    TorchSaveAtomic,
    TorchSaveAsync,
    TorchSaveChecked,
    Dcp,
    DcpOverwrite,
    DcpAsync,
    TwoTier,
]
ALL = [*BUILT_IN, MyTarget]


class Saved(NamedTuple):
    """What a rank held at each save, by step, and the losses of the two steps after the last save."""

    digests: dict[int, StateDigest]
    levels: list[list[str]]
    losses: list[float]


class Recovered(NamedTuple):
    """What recovery answered, what the live state then was, and the losses of two steps more."""

    answer: Chosen | Nothing
    digest: StateDigest
    losses: list[float]


class TargetJob:
    """One job and its storage: a shared directory, and one for each node; a node has one rank unless set otherwise."""

    def __init__(self, root: Path, cls: type[Target], strategy: str = "ddp", **options: Any) -> None:
        self.shared = root / "shared"
        self.shared.mkdir(exist_ok=True)
        self.root = root
        self.cls = cls
        self.strategy = strategy
        self.options = options
        self.group = True
        self.ranks_on_node = 1

    def local(self, node: int) -> Path:
        path = self.root / f"node-{node}"
        path.mkdir(exist_ok=True)
        return path

    def target(self, rank: int, world_size: int, attempt: int, marks: list[str] | None = None) -> Target:
        context = Context(
            rank=rank,
            world_size=world_size,
            node=rank // self.ranks_on_node,
            local_rank=rank % self.ranks_on_node,
            ranks_on_node=self.ranks_on_node,
            shared=self.shared,
            local=self.local(rank // self.ranks_on_node),
            attempt=attempt,
            options=self.options,
            mark=(lambda _: None) if marks is None else marks.append,
        )
        return self.cls(context)

    def train(
        self,
        world_size: int = 2,
        attempt: int = 0,
        start: Intent | None = None,
        last: int = 4,
        before_exit: Callable[[Target], None] = lambda target: target.close(),
    ) -> list[Saved]:
        """Train up to step `last`, save after every second step, train two steps more. `start` recovers first."""

        def life(rank: int) -> Saved:
            job = job_of(world_size, rank, attempt, strategy=self.strategy)
            target = self.target(rank, world_size, attempt)
            if start is not None:
                target.recover(job.state, start)
            saved = Saved({}, [], [])
            while job.state.step < last:
                train_step(job)
                if job.state.step % 2 == 0:
                    saved.digests[job.state.step] = digest(job.state)
                    ack = target.save(job.state, job.state.step).wait()
                    levels = [ack.level]
                    # The last save's slower tier is left to `before_exit`.
                    while ack.then is not None and job.state.step < last:
                        ack = ack.then.wait()
                        levels.append(ack.level)
                    saved.levels.append(list(levels))
            saved.losses.extend(train_step(job).loss for _ in range(2))
            before_exit(target)
            return saved

        return run_ranks(world_size, life, self.group).results

    def recover(self, world_size: int = 2, attempt: int = 1, intent: Intent = Intent.RESUME) -> list[Recovered]:
        """Recover in fresh processes and train two steps."""
        return self.recover_outcomes(world_size, attempt, intent).results

    def recover_outcomes(
        self, world_size: int = 2, attempt: int = 1, intent: Intent = Intent.RESUME
    ) -> Ranks[Recovered]:
        """The same, failures included."""

        def life(rank: int) -> Recovered:
            job = job_of(world_size, rank, attempt, strategy=self.strategy)
            answer = self.target(rank, world_size, attempt).recover(job.state, intent)
            held = digest(job.state)
            return Recovered(answer, held, [train_step(job).loss for _ in range(2)])

        return run_ranks(world_size, life, self.group)

    def audit(self, world_size: int = 2) -> list[dict[int, StateDigest]]:
        """In fresh processes, what each rank holds after loading each retained step."""
        return self.audit_outcomes(world_size).results

    def audit_outcomes(self, world_size: int = 2, asked: Sequence[int] | None = None) -> Ranks[dict[int, StateDigest]]:
        """The same, failures included; of the steps asked for, if any are named."""

        def life(rank: int) -> dict[int, StateDigest]:
            job, target = job_of(world_size, rank, 7, strategy=self.strategy), self.target(rank, world_size, 7)
            steps = target.retained() if asked is None else asked
            assert steps is not None
            held = {}
            for step in steps:
                target.load(job.state, step)
                held[step] = digest(job.state)
            return held

        return run_ranks(world_size, life, self.group)


def files_under(root: Path) -> list[str]:
    """Relative paths of all files, sorted."""
    return sorted(str(Path(folder, name).relative_to(root)) for folder, _, names in os.walk(root) for name in names)
