"""Canaries that overwrite or remove the last checkpoint, or leave behind what fills or blocks storage."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save import TorchSave
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class InPlace(TorchSave):
    """The only checkpoint is rewritten in place.

    Caught first by newest-complete: a crash during the second save leaves torn files, recovery refuses them
    (clearly), and the first save, acknowledged and required, is gone.

    `torch-save`; the bug is the claim.
    """

    name = "canary-in-place"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})


class RetiresFirst(TorchSaveAtomic):
    """Retention makes room for the new checkpoint before that is committed.

    Caught first by newest-complete: a crash between the two leaves nothing that recovery would take, where the
    checkpoint just removed is required. always-recoverable holds no longer either, and comes after it.

    Never holds more than one complete checkpoint.
    """

    name = "canary-retires-first"

    def commit(self, temporary: Path, final: Path) -> None:
        """The bug: the order."""
        self.stage("retire")
        for step in steps_in(self.shared):
            self.retire(step_directory(self.shared, step))
        self.stage("commit")
        super().commit(temporary, final)


class Litter(TorchSaveAtomic):
    """Every save writes into a temporary directory with a name of its own, and nobody removes those.

    Caught first by bounded-leftovers: what crashes leave behind grows beyond what the target declares, which is nothing.

    Correct in all but its remains.
    """

    name = "canary-litter"
    abandoned: ClassVar[int] = 0

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the name has the attempt in it, so that a later attempt doesn't meet it again."""
        final = step_directory(self.shared, step)
        temporary = final.with_name(f"{final.name}.attempt-{self.context.attempt}.tmp")
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"making {temporary}", temporary.mkdir)
        self.together(f"writing {temporary}", lambda: self.write(temporary, shared_part, own_part))
        self.stage("commit")
        self.on_rank_zero(f"committing {final}", lambda: self.commit(temporary, final))
        return Done("shared")


class Blocked(TorchSaveAtomic):
    """A directory that an interrupted save left makes every later save of that step fail.

    Caught first by progress: each restart resumes correctly, reaches the step again, and dies at the same mkdir.

    Correct while no save was interrupted.
    """

    name = "canary-blocked"

    def prepare(self, temporary: Path) -> None:
        """The bug: what is left is not removed, and mkdir insists."""
        temporary.mkdir()
