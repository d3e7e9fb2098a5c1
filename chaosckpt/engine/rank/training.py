"""The program of the job under test: recover with the target, train, save, close."""

from __future__ import annotations

from typing import get_args

from chaosckpt.engine.rank.environment import look_around
from chaosckpt.engine.rank.job import MESSAGE_BYTES, JobProgram
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import TrainingProgram
from chaosckpt.engine.wire.reports import Stepping
from chaosckpt.errors import PluginError
from chaosckpt.model.journal import (
    Acknowledged,
    Finished,
    Outstanding,
    Recovered,
    RecoveryStarted,
    SaveFailed,
    SaveStarted,
    StepTrace,
)
from chaosckpt.targets.api import Ack, Chosen, Done, Intent, Level, Nothing, Pending, Target
from chaosckpt.training.digest import digest, streams
from chaosckpt.training.loop import Job, StepReport, train_step
from chaosckpt.training.state import TrainState


class Training(JobProgram):
    """A rank that trains as the workload's script does, with the manners that its settings name."""

    def __init__(self, order: RankOrder, channel: Channel, program: TrainingProgram) -> None:
        super().__init__(order, channel)
        self.program = program
        self.outstanding: list[tuple[int, Pending]] = []
        self.trained: list[StepTrace] = []
        self.retries = self.workload.retries + order.attempt.retries
        """How often a save that raised is tried again."""

    def run(self) -> None:
        """Join the process group, recover, train, save, close."""
        self.join()
        if self.program.report_environment:
            self.report(look_around(self.order.place))
        job = self.build()
        target = self.make_target()
        self.recover(job, target)
        if self.program.recover_only:
            return
        self.train(job, target)
        self.leave(job, target)

    def leave(self, job: Job, target: Target) -> None:
        """End in order, with the manners of the workload's training script."""
        import torch.distributed as dist

        workload, state = self.workload, job.state
        self.where, self.step = "wait", state.step
        if workload.destroys_group and dist.is_initialized():
            dist.destroy_process_group()
        while self.outstanding and workload.at_end == "await":
            self.acknowledge_oldest()
        if workload.at_end != "exit":
            self.where = "close"
            target.close()
        self.report(
            Finished(
                attempt=self.attempt, rank=self.rank, step=state.step, digest=digest(state), trained=self.take_trained()
            )
        )

    def take_trained(self) -> tuple[StepTrace, ...]:
        """The steps trained since this was last asked."""
        trained, self.trained = tuple(self.trained), []
        return trained

    def recover(self, job: Job, target: Target) -> None:
        """Let the target recover, then report the step that it names beside what the live objects hold."""
        self.where = "recover"
        self.report(RecoveryStarted(attempt=self.attempt, rank=self.rank, rng=streams(job.state)))
        chosen = chosen_step(target.recover(job.state, Intent(self.order.attempt.intent)))
        self.report(Recovered(attempt=self.attempt, rank=self.rank, chosen=chosen, digest=digest(job.state)))

    def train(self, job: Job, target: Target) -> None:
        """Train to the last step, saving on the way. A save is awaited at once when it is done, else before the next one."""
        settings, state = self.workload, job.state
        holds = self.order.attempt.hold_steps.get(self.rank, ())
        while state.step < settings.steps:
            self.where, self.step = "train", state.step + 1
            if self.step in holds:
                self.report(Stepping(self.rank, self.step))
            self.trained.append(trace(train_step(job)))
            if settings.saves_after(state.step):
                self.save(job, target)
                if state.step == self.program.stop_after:
                    return

    def save(self, job: Job, target: Target) -> None:
        """Save, and where that raises try again as often as the workload and the attempt say."""
        state = job.state
        self.where = "wait"
        while len(self.outstanding) >= self.workload.outstanding:
            self.acknowledge_oldest()
        for left in reversed(range(self.retries + 1)):
            try:
                self.save_once(state, target)
                return
            except Exception as error:  # whatever the target raises, a script that tries again does so
                if not left:
                    raise
                self.save_failed(state.step, error)

    def save_once(self, state: TrainState, target: Target) -> None:
        """Start one save and, if it is done already, report its acknowledgement; else what is under way now."""
        self.where, self.step = "save", state.step
        self.report(
            SaveStarted(
                attempt=self.attempt,
                rank=self.rank,
                step=state.step,
                digest=digest(state),
                trained=self.take_trained(),
            )
        )
        pending = target.save(state, state.step)
        if not isinstance(pending, Pending):
            raise PluginError(
                f"save() returned {pending!r}; it must return an object with wait(), such as Done('shared')"
            )
        self.outstanding.append((state.step, pending))
        if isinstance(pending, Done):
            self.acknowledge_oldest()
        else:
            saves = tuple(step for step, other in self.outstanding if not is_done(other))
            self.report(Outstanding(attempt=self.attempt, rank=self.rank, step=state.step, saves=saves))

    def save_failed(self, step: int, error: Exception) -> None:
        """Report a failed save that doesn't end the job."""
        self.report(
            SaveFailed(
                attempt=self.attempt,
                rank=self.rank,
                step=step,
                where=self.where,
                error_type=type(error).__name__,
                message=str(error)[:MESSAGE_BYTES],
            )
        )

    def acknowledge_oldest(self) -> None:
        """Await the oldest outstanding save and report its level; a slower tier is awaited in its turn."""
        step, pending = self.outstanding.pop(0)
        try:
            ack = pending.wait()
        except Exception as error:  # as in save: but what was trained since can't be saved as that step any more
            if isinstance(pending, Done) or not self.retries:
                raise
            self.save_failed(step, error)
            return
        if not isinstance(ack, Ack) or ack.level not in get_args(Level):
            raise PluginError(f"wait() of a save returned {ack!r}; it must return Ack('local') or Ack('shared')")
        self.report(Acknowledged(attempt=self.attempt, rank=self.rank, step=step, level=ack.level))
        if ack.then is not None:
            self.outstanding.append((step, ack.then))


def trace(step: StepReport) -> StepTrace:
    """What one step did, as the journal keeps it."""
    return StepTrace(step.step, tuple(step.samples), step.loss.hex())


def is_done(pending: Pending) -> bool:
    """Whether a save under way says that it is finished; one that can't tell isn't, as it has not been awaited."""
    done = getattr(pending, "done", None)
    return done is not None and bool(done())


def chosen_step(answer: object) -> int | None:
    """The step that a recovery names, None for Nothing. Raises PluginError for what is no answer: it must not pass for one."""
    if isinstance(answer, Nothing):
        return None
    # bool is an int to Python, and a step of numpy or torch is none to the node.
    if isinstance(answer, Chosen) and type(answer.step) is int:
        return answer.step
    raise PluginError(f"recover() returned {answer!r}; it must return Chosen(step) with an int, or Nothing()")
