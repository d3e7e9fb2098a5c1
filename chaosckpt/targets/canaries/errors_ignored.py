"""Canaries that meet an error wrongly: passed over, kept to one rank or one thread, or taken for damage."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from chaosckpt.targets.api import CheckpointError, Done, Option, Pending
from chaosckpt.targets.layout import remove_tree, step_directory
from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.targets.two_tier import Generation, TwoTier
from chaosckpt.training.state import TrainState

FULL = (errno.ENOSPC, errno.EDQUOT)


class OneNotices(TorchSaveAtomic):
    """Only rank 0 notices that a save failed; it leaves the checkpoint uncommitted and tells nobody.

    Caught first by durable-acknowledgement: every rank was told that the checkpoint is safe, and an audit finds the one before it
    as the newest.

    Correct while nothing fails.
    """

    name = "canary-one-notices"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: a message on rank 0, and Done on all."""
        try:
            return super().save(state, step)
        except CheckpointError as error:
            if self.rank == 0:
                sys.stderr.write(f"step {step} was not saved: {error}\n")
            return Done("shared")


class SpaceIgnored(TorchSaveAtomic):
    """A full disk is logged and passed over, and the save goes on.

    Caught first by durable-acknowledgement: the directory is committed and acknowledged with a file cut short, and can't be
    loaded.

    Correct while there is space.
    """

    name = "canary-space-ignored"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: "no space left" is no reason to stop."""
        try:
            super().write(directory, shared_part, own_part)
        except (OSError, RuntimeError) as error:  # torch.save's writer may wrap the error.
            if not _is_full(error):
                raise
            sys.stderr.write(f"no space for {directory}: {error}\n")


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk is this error, or what lies behind it."""
    if error is None:
        return False
    return getattr(error, "errno", None) in FULL or _is_full(error.__cause__ or error.__context__)


class DrainErrorLost(TwoTier):
    """An error of the drain to shared storage is logged there, and the save is acknowledged as shared.

    Caught first by durable-acknowledgement: without node-local storage, whose loss it promises to survive, the step can't be loaded.

    Correct while nothing fails, and while no node is lost.
    """

    name = "canary-drain-error-lost"

    def copy(self, generation: Generation) -> None:
        """The bug: what is missing on shared storage is committed all the same."""
        try:
            super().copy(generation)
        except OSError as error:
            sys.stderr.write(f"could not drain {generation.directory}: {error}\n")


class ErrorRetired(TorchSaveAtomic):
    """An error in a write is logged and passed over, and each save retires the one before.

    Caught first by durable-acknowledgement: what was acknowledged after the error can't be loaded, which only storage as it was at
    that moment shows, for by the end of the attempt newer saves have taken its place.

    Correct while nothing fails.
    """

    name = "canary-error-retired"
    options: ClassVar[Mapping[str, Option]] = {"keep": 1}

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: nobody hears of the error."""
        try:
            super().write(directory, shared_part, own_part)
        except (OSError, RuntimeError) as error:
            sys.stderr.write(f"could not write {directory}: {error}\n")


class ThreadErrorLost(TorchSaveAsync):
    """An error of the writer thread is logged there, and nobody hears of it.

    Caught first by durable-acknowledgement: after an error in a write the checkpoint is committed and acknowledged with a file
    missing or cut short, and can't be loaded.

    Correct while nothing fails.
    """

    name = "canary-thread-error-lost"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the future never gets the exception."""
        try:
            super().write(directory, shared_part, own_part)
        except (OSError, RuntimeError) as error:
            sys.stderr.write(f"could not write {directory}: {error}\n")


class UnreadableDeleted(TorchSaveAtomic):
    """Recovery deletes the checkpoint that it can't read, so that the next start is clean.

    Caught first by durable-acknowledgement: after one failed read, which says nothing about the file, the only checkpoint, which
    was acknowledged, is gone, and an audit finds it in no list.

    Correct while every read succeeds. It keeps one checkpoint.
    """

    name = "canary-unreadable-deleted"
    options: ClassVar[Mapping[str, Option]] = {"keep": 1}

    def load(self, state: TrainState, step: int) -> None:
        """The bug: an error is taken for damage, and damage for a reason to delete."""
        try:
            super().load(state, step)
        except CheckpointError:
            if self.rank == 0:
                remove_tree(step_directory(self.shared, step))
            raise
