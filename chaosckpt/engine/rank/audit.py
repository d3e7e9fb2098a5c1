"""The program of an audit: it loads the retained checkpoints one by one and reports what each holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chaosckpt.engine.rank.job import MESSAGE_BYTES, JobProgram, Terminated
from chaosckpt.engine.rank.training import chosen_step
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import AuditProgram
from chaosckpt.engine.wire.reports import Retained
from chaosckpt.errors import PluginError
from chaosckpt.model.journal import NOTHING, Audited
from chaosckpt.targets.api import Intent, Target
from chaosckpt.training.digest import digest
from chaosckpt.training.state import TrainState


class Audit(JobProgram):
    """Recovers nothing, trains nothing, changes nothing."""

    def __init__(self, order: RankOrder, channel: Channel, program: AuditProgram) -> None:
        super().__init__(order, channel)
        self.program = program

    def run(self) -> None:
        """Load the newest first. After one that a rank can't load the ranks may be out of step, so it is the last one."""
        self.join()
        target = self.make_target()
        self.where = "audit"
        retained = retained_steps(target.retained())
        self.report(Retained(self.rank, retained))
        # Rank 0 holds the store, and with nothing to load it would be gone before the others have joined.
        target.gather(True)
        if retained is None and self.program.recovers:
            self.audit(self.program.steps[-1], lambda state: _chosen(target, state))
            return
        for step in sorted(set(self.program.steps) & set(retained or ()), reverse=True):
            if not all(target.gather(self.load(target, step))):
                return

    def load(self, target: Target, step: int) -> bool:
        """Load one checkpoint by its step, and report it. False where it can't be loaded."""

        def loading(state: TrainState) -> None:
            target.load(state, step)

        return self.audit(step, loading)

    def audit(self, step: int, loading: Callable[[TrainState], int | None]) -> bool:
        """Load into a job of its own, and report it as what was found of `step`. False where it can't be loaded."""
        self.step = step
        state = self.build().state
        try:
            chosen = loading(state)
        except Terminated:
            raise
        except (
            BaseException
        ) as error:  # that it raises is what the audit is for; torch's CheckpointException is no Exception
            self.report(
                Audited(
                    attempt=self.attempt,
                    rank=self.rank,
                    step=step,
                    error_type=type(error).__name__,
                    message=str(error)[:MESSAGE_BYTES],
                )
            )
            return False
        self.report(Audited(attempt=self.attempt, rank=self.rank, step=step, chosen=chosen, digest=digest(state)))
        return True


def _chosen(target: Target, state: TrainState) -> int:
    step = chosen_step(target.recover(state, Intent.RESUME))
    return NOTHING if step is None else step


def retained_steps(answer: object) -> tuple[int, ...] | None:
    """What a target answered to `retained`. Raises PluginError for what is no list of steps: the node could not read it."""
    if answer is None:
        return None
    # As with chosen_step: a step of numpy or torch is none to the node, and a bool or a letter is none to anybody.
    if isinstance(answer, Iterable):
        steps = tuple(answer)
        if all(type(step) is int for step in steps):
            return steps
    raise PluginError(f"retained() returned {answer!r}; it must return None or a list of steps, each an int")
