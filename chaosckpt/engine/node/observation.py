"""How a node observes the program that a process tree runs: what differs between a rank with a target and a command.

Launching, killing, suspending, counting and the gate are the same for all (chaosckpt/engine/node/rank_process.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from chaosckpt.commands.launches import HOOK, Executed
from chaosckpt.commands.naming import Naming
from chaosckpt.engine.node.phase import ObservedPhase, Phase, ReportedPhase
from chaosckpt.engine.wire.orders import AttemptOrder, CommandNodeSettings, NodeSettings
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.engine.wire.reports import Report
from chaosckpt.engine.wire.requests import CommandOutput
from chaosckpt.gate.fence.guard import Guard
from chaosckpt.model.observed import SUFFIX, decoded
from chaosckpt.model.operation import Operation
from chaosckpt.probe import VARIABLE


class Observation(Protocol):
    """What is known of one tree's program while it runs."""

    phase: Phase
    low_descriptors: bool
    """Whether files get numbers outside of the gate's band, too: by redirections of a shell, for one."""
    guard: Guard | None
    """What keeps the tree from changing files outside of the tiers."""
    tail_bytes: int
    """Of what it printed, so much is told at its end."""

    def performed(self, operation: Operation) -> None:
        """Take note of an operation that has had its effect."""

    def reported(self, report: Report) -> bool:
        """Take note of a report. False where it is nothing that the trial runner is to know."""

    def output(self, printed: str, executed: tuple[Executed, ...]) -> CommandOutput:
        """What this program left to be read beside its files; `executed` are the processes of ranks that it has started."""


class JobObservation:
    """A rank of a training job: it reports what it does."""

    low_descriptors = False
    guard: Guard | None = None
    tail_bytes = 2000

    def __init__(self) -> None:
        self.phase: Phase = ReportedPhase()

    def performed(self, operation: Operation) -> None:
        """See Observation."""

    def reported(self, report: Report) -> bool:
        """See Observation."""
        self.phase.report(report)
        return True

    def output(self, printed: str, executed: tuple[Executed, ...]) -> CommandOutput:
        """See Observation."""
        return CommandOutput()


class CommandObservation:
    """An unmodified command: what it does is told by its operations. It may be a shell, or anything else."""

    low_descriptors = True
    tail_bytes = 12_000
    """Enough of the end for an error of a rank and, behind it, all that torchrun has to say about it."""

    def __init__(self, node: CommandNodeSettings, program: CommandProgram, made: set[bytes]) -> None:
        self._naming = Naming(node.checkpoints) if node.checkpoints else None
        self.phase: Phase = ObservedPhase(self._naming, program.save_numbers)
        self.guard: Guard | None = Guard(
            node.writable or (), files=node.writable is not None, network=not node.network, made=made
        )
        self._read: set[int] = set()
        self._told = Path(node.environment[VARIABLE])
        self._told.unlink(missing_ok=True)
        self._observed = Path(node.observed) if node.observed else None
        for old in self._steps():
            old.unlink()
        self._hooked = Path(node.environment[HOOK]) if HOOK in node.environment else None

    def performed(self, operation: Operation) -> None:
        """See Observation."""
        if self._naming is not None and operation.address.op == "open_read" and operation.result == 0:
            step = self._naming.entry(operation.raw)
            self._read |= set() if step is None else {step}

    def reported(self, report: Report) -> bool:
        """See Observation. A command reports nothing."""
        return False

    def output(self, printed: str, executed: tuple[Executed, ...]) -> CommandOutput:
        """See Observation."""
        assert self.guard is not None
        files: list[Path] = []
        if self._hooked is not None:
            ranks = [self._hooked / f"{process.pid}.modules" for process in executed]
            files = ranks or sorted(self._hooked.glob("*.modules"))
        return CommandOutput(
            printed=printed,
            refused=tuple(self.guard.refused),
            modules=tuple(dict.fromkeys(name for file in files for name in _lines(file))),
            told=_lines(self._told),
            read=tuple(sorted(self._read)),
            executed=executed,
            observed=tuple(step for file in self._steps() for step in decoded(_lines(file))),
        )

    def _steps(self) -> list[Path]:
        """The files in which ranks have left what they trained."""
        return sorted(self._observed.glob(f"*{SUFFIX}")) if self._observed is not None else []


def _lines(path: Path) -> tuple[str, ...]:
    """What a program left in a file of the harness's; nothing where it left none."""
    return tuple(path.read_text(errors="replace").splitlines()) if path.exists() else ()


def observation_of(order: AttemptOrder, settings: NodeSettings, made: set[bytes]) -> Observation:
    """The right one for what this attempt's ranks run. `made` are the names in shared memory that earlier attempts made."""
    if isinstance(order.program, CommandProgram):
        assert settings.command is not None
        return CommandObservation(settings.command, order.program, made)
    return JobObservation()
