"""The program of an audit: it loads the retained checkpoints one by one and reports what each holds."""

from __future__ import annotations

from collections.abc import Iterable

from chaosckpt.engine.rank.job import MESSAGE_BYTES, JobProgram, Terminated
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import AuditProgram
from chaosckpt.engine.wire.reports import Retained
from chaosckpt.errors import PluginError
from chaosckpt.model.journal import Audited
from chaosckpt.targets.api import Target
from chaosckpt.training.digest import digest


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
        for step in sorted(set(self.program.steps) & set(retained or ()), reverse=True):
            if not all(target.gather(self.load(target, step))):
                return

    def load(self, target: Target, step: int) -> bool:
        """Load one checkpoint into a job of its own, and report it. False where it can't be loaded."""
        self.step = step
        state = self.build().state
        try:
            target.load(state, step)
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
        self.report(Audited(attempt=self.attempt, rank=self.rank, step=step, digest=digest(state)))
        return True


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
