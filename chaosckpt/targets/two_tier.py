"""`two-tier`: saved to node-local storage, acknowledged, then drained to shared storage and acknowledged again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch.distributed as dist

from chaosckpt.model.guarantee import GUARANTEES
from chaosckpt.targets.api import Ack, CheckpointError, Chosen, Intent, Level, Nothing, Option, Pending, Target
from chaosckpt.targets.layout import remove_tree
from chaosckpt.targets.torch_save_atomic import SHARED_PART, load_file, own_file, save_synced
from chaosckpt.training.state import TrainState


class Generation(NamedTuple):
    """One save: the same step saved again by a later attempt is another generation, and the two must not be mixed."""

    step: int
    attempt: int
    world_size: int

    @property
    def directory(self) -> str:
        """The name of its directory, in both tiers."""
        return f"step-{self.step:06d}-attempt-{self.attempt:03d}-of-{self.world_size}"


class Found(NamedTuple):
    """What a listing of both tiers found: where this rank can load what, what each rank can, and what this world can."""

    mine: dict[Generation, Path]
    everyone: list[set[Generation]]
    choices: set[Generation]


_DIRECTORY = re.compile(r"step-(\d+)-attempt-(\d+)-of-(\d+)")


def generations_in(root: Path) -> dict[Generation, Path]:
    """The generations that have a directory under `root`."""
    matches = {entry: _DIRECTORY.fullmatch(entry.name) for entry in root.iterdir()}
    return {Generation(*map(int, match.groups())): entry for entry, match in matches.items() if match}


class TwoTier(Target):
    """Each node's first rank writes the shared part to the node's storage, every rank its own, each file atomically.

    The drain copies them to shared storage under a temporary name; the rename to the final name is its commit. Recovery
    takes the newest generation that every rank can load from either tier, each rank from the nearer one; in another
    world size, the newest that any rank can. Options: `keep` the newest so many generations on shared storage.
    """

    name = "two-tier"
    guarantees = GUARANTEES - {"integrity"}
    tiers: ClassVar[frozenset[Level]] = frozenset({"local", "shared"})
    nonces = (r"(?<=-attempt-)\d+",)
    options: ClassVar[Mapping[str, Option]] = {"keep": 2}

    _drain: Drain | None = None
    _executor: ThreadPoolExecutor | None = None

    def save(self, state: TrainState, step: int) -> Pending:
        """Save to node-local storage on every node, and begin to drain it. Awaits the previous drain."""
        self.close()
        generation = Generation(step, self.context.attempt, self.world_size)
        directory = self.local / generation.directory
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.together(f"writing {directory}", lambda: self._write_local(directory, shared_part, own_part))
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drain")
        self._drain = Drain(self, generation, self._executor.submit(self.copy, generation))
        return LocalSave(self._drain)

    def close(self) -> None:
        """Await the drain under way, if any."""
        if self._drain is not None:
            self._drain.wait()

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest generation that all ranks can load, from whichever tier each has it in."""
        self.stage("discover")
        found = self._find()
        if not found.choices:
            return self.nothing(intent, f"{self.local / 'step-*'} and {self.shared / 'step-*'}, loadable by every rank")
        newest = max(found.choices)
        self.stage("load")
        self._load(state, newest, found)
        return Chosen(newest.step)

    def retained(self) -> Sequence[int]:
        """The steps of the generations that this world can load, from either tier."""
        return sorted({generation.step for generation in self._find().choices})

    def load(self, state: TrainState, step: int) -> None:
        """Load the newest generation of one step. Raises CheckpointError on every rank where there is none or any fails."""
        found = self._find()
        generations = [generation for generation in found.choices if generation.step == step]
        if not generations:
            raise CheckpointError(f"no generation of step {step} in {self.local} and {self.shared} is loadable")
        self._load(state, max(generations), found)

    def copy(self, generation: Generation) -> None:
        """Copy this rank's files of a generation to shared storage, under a temporary name."""
        source, target = self.local / generation.directory, _draining(self.shared / generation.directory)
        target.mkdir(exist_ok=True)
        for name in ([SHARED_PART] if self.rank == 0 else []) + [own_file(self.rank)]:
            with (source / name).open("rb") as reading, (target / name).open("wb") as writing:
                shutil.copyfileobj(reading, writing, 1 << 20)
                writing.flush()
                os.fsync(writing.fileno())

    def commit(self, generation: Generation) -> None:
        """Give a drained generation its name on shared storage, and retire what it supersedes. Called on every rank."""
        self.stage("commit")
        final = self.shared / generation.directory
        self.on_rank_zero(f"committing {final}", lambda: self._commit(final))
        self.stage("retire")
        if self.context.local_rank == 0:
            # This node's other ranks may have begun the next save of this attempt already.
            for other, directory in sorted(generations_in(self.local).items()):
                if other.attempt < generation.attempt or other.step < generation.step:
                    remove_tree(directory)

    def _write_local(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        directory.mkdir(exist_ok=True)
        if self.context.local_rank == 0:
            _save_atomically(shared_part, directory / SHARED_PART)
        _save_atomically(own_part, directory / own_file(self.rank))
        self.fsync_directory(directory)
        self.fsync_directory(self.local)

    def _commit(self, final: Path) -> None:
        self.fsync_directory(_draining(final))
        if final.exists():  # The same process saves this step again; node-local storage holds it meanwhile.
            remove_tree(final)
        _draining(final).rename(final)
        self.fsync_directory(self.shared)
        for leftover in sorted(self.shared.glob("*.tmp")):
            remove_tree(leftover)
        for _, directory in sorted(generations_in(self.shared).items())[: -int(self.option("keep"))]:
            directory.rename(_draining(directory))
            remove_tree(_draining(directory))

    def _find(self) -> Found:
        mine = self.together(f"listing {self.local} and {self.shared}", self._loadable)
        everyone = self.gather(set(mine))
        here = {generation for generation in set.intersection(*everyone) if generation.world_size == self.world_size}
        elsewhere = {generation for generation in set.union(*everyone) if generation.world_size != self.world_size}
        return Found(mine, everyone, here | elsewhere)

    def _load(self, state: TrainState, generation: Generation, found: Found) -> None:
        if generation.world_size == self.world_size:
            directory = found.mine[generation]
            shared_part, own_part = self.together(
                f"loading {directory}", lambda: self._read(directory, own_file(self.rank))
            )
        else:
            holder = next(rank for rank, theirs in enumerate(found.everyone) if generation in theirs)
            shared_part, own_part = self._from(holder, found.mine.get(generation), generation)
        state.load_state_dict(shared_part)
        state.load_rank_state_dict(own_part)

    def _loadable(self) -> dict[Generation, Path]:
        """What this rank can load, and from where: the nearer tier wins. A node-local directory may be incomplete."""
        found = generations_in(self.shared)
        for generation, directory in generations_in(self.local).items():
            own = own_file(self.rank) if generation.world_size == self.world_size else "rank-*.pt"
            if (directory / SHARED_PART).exists() and any(directory.glob(own)):
                found[generation] = directory
        return found

    def _read(self, directory: Path, own: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return load_file(directory / SHARED_PART), load_file(min(directory.glob(own)))

    def _from(
        self, holder: int, directory: Path | None, generation: Generation
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What rank `holder` reads, on every rank: a new node's local storage is empty."""
        doing = f"loading {generation.directory} on rank {holder}"
        parts = self.together(
            doing, lambda: self._read(directory, "rank-*.pt") if directory and self.rank == holder else None
        )
        values = [parts]
        if self.world_size > 1:
            dist.broadcast_object_list(values, src=holder)
        if values[0] is None:
            raise CheckpointError(f"failed {doing}: it read nothing")
        return values[0]


class LocalSave(Pending):
    """A save that node-local storage holds on every node."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain

    def wait(self) -> Ack:
        """Return at once."""
        return Ack("local", then=self._drain)


class Drain(Pending):
    """The copy of one generation to shared storage."""

    def __init__(self, target: TwoTier, generation: Generation, copying: Future[None]) -> None:
        self._target = target
        self._generation = generation
        self._copying = copying
        self._committed = False

    def wait(self) -> Ack:
        """Return when every rank's copy is finished and committed. Ranks call it at the same point of training."""
        if not self._committed:
            self._target.together(f"draining {self._generation.directory}", self._copying.result)
            self._target.commit(self._generation)
            self._committed = True
        return Ack("shared")


def _draining(directory: Path) -> Path:
    return directory.with_name(directory.name + ".tmp")


def _save_atomically(value: object, path: Path) -> None:
    temporary = path.with_name(path.name + ".tmp")
    save_synced(value, temporary)
    temporary.rename(path)
