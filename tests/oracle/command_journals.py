"""Journals of commands written by hand: what each attempt found, said and left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from chaosckpt.commands.naming import UNSAVED
from chaosckpt.model import journal as j
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import CommandSettings, Scenario
from tests.oracle.journals import JournalBuilder, operation

SAVED = ("checkpoints", "resumed", "resumes", "saved", "result", "exact")
UNSAID = ("checkpoints", "resumed", "resumes", "result", "exact")
"""What a command's golden runs have shown, with `--saved` and without it."""


MISSING = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    trainer.train(resume_from_checkpoint=True)
FileNotFoundError: [Errno 2] No such file or directory: '/o/out/checkpoint-4/trainer_state.json'
"""
"""What a script prints that fails on an incomplete checkpoint."""


class CommandJournal(JournalBuilder):
    """A trial of a command. Its checkpoints are files `out:ckpt-N.pt`; what it says is told at the end of each attempt, with
    what lies on storage."""

    struck = operation(path="out:ckpt-4.pt")

    def __init__(
        self,
        judged: Sequence[str] = SAVED,
        *,
        faults: Sequence[Sequence[str]] = (("cut",),),
        command: CommandSettings | None = None,
        guarantees: tuple[Guarantee, ...] = ("process-crash",),
        ranks: Sequence[int] = (1,),
        **started: object,
    ) -> None:
        super().__init__(ranks, faults, guarantees, total_steps=0, judged=tuple(judged), saves=(2, 4, 6), **started)
        self.scenario = Scenario(name="told", command=command or CommandSettings(argv=("python", "train.py", "{out}")))
        self.lying: dict[int, str | None] = {}
        self.read: tuple[int, ...] | None = None
        """The steps of which the next attempts read files."""
        self.spare: tuple[int, ...] = ()
        """The steps that lie under other names."""
        self._said: list[j.AnyEvent] = []

    @property
    def resumes(self) -> bool:
        """True once something of a checkpoint lies on storage."""
        return bool(self.lying)

    def says_resumed(self, *steps: int | None) -> Self:
        """Each a line that says so."""
        for step in steps:
            said = j.Said(attempt=self.number, what="resumed", step=step, line=f"resumed from step {step}")
            self._said.append(said)
        return self

    def saves(self, *steps: int, said: bool = True) -> Self:
        """Each is complete on storage from now on."""
        for step in steps:
            self.lying[step] = None
        return self.says_saved(*steps) if said else self

    def says_saved(self, *steps: int) -> Self:
        for step in steps:
            self._said.append(j.Said(attempt=self.number, what="saved", step=step, line=f"saved step {step}"))
        return self

    def tears(self, step: int, wrong: str | None = None) -> Self:
        """Something of this step is there that isn't complete."""
        self.lying[step] = wrong or f"out:ckpt-{step}.pt"
        return self

    def saves_unknown(self, step: int) -> Self:
        """A step that no golden run saved, such as on a signal."""
        return self.tears(step, UNSAVED)

    def removes(self, *steps: int) -> Self:
        for step in steps:
            self.lying.pop(step, None)
        return self

    def refused(self, what: str = "open_write of /home/u/.cache") -> Self:
        self.events.append(j.Untraced(attempt=self.number, rank=0, what=f"{what} was refused", refused=True))
        return self

    def probes(self, what: str, step: int, *, rank: int = 0, samples: tuple[int, ...] = (), digest: str = "") -> Self:
        """What a rank tells through the probe."""
        self.events.append(
            j.Probed(attempt=self.number, rank=rank, what=what, step=step, samples=samples, digest=digest)  # type: ignore[arg-type]
        )
        return self

    def fails(self, tail: str = "ValueError: no", code: int | None = 1, signal: int | None = None) -> Self:
        return self.exits(code, ranks=[0], tail=tail, signal=signal).ends("failed")

    def hangs(self, *, confirmed: bool = True) -> Self:
        return self.exits(by="harness", ranks=[0]).ends("hung", confirmed=confirmed)

    def kills(self) -> Self:
        return self.exits(by="fault", ranks=[0]).ends("killed")

    def finishes(self, *, operations: int = 100, equal: bool | None = True) -> Self:
        """It comes to its end; the closing attempt is compared with the uninterrupted run, unless `equal` is None."""
        self.exits(0, ranks=[0]).ends("finished", operations=(operations,))
        last = next(at for at in reversed(self.events) if isinstance(at, j.AttemptStarted))
        if last.closing and equal is not None:
            seen = "aa" if equal else "bb"
            self.events.append(j.ResultCompared(attempt=self.number, equal=equal, expected="aa", seen=seen))
        return self

    def ends(self, outcome: str, *, confirmed: bool = False, operations: Sequence[int] = (80,)) -> Self:
        super().ends(outcome, confirmed=confirmed, operations=operations)
        self.events += self._said
        self._said = []
        lying = sorted(self.lying.items())
        self.events.append(
            j.CheckpointsSeen(
                attempt=self.number,
                complete=tuple(step for step, wrong in lying if wrong is None),
                partial=tuple(step for step, wrong in lying if wrong is not None),
                differing={step: wrong for step, wrong in lying if wrong is not None},
                read=self.read,
                spare=self.spare,
            )
        )
        return self


def killed_in_save_4(*, torn: bool = True, judged: Sequence[str] = SAVED, **more: object) -> CommandJournal:
    """A first attempt of a command that saved step 2 and was killed while it saved step 4, of which something is left."""
    trial = CommandJournal(judged, **more).attempt().saves(2)  # type: ignore[arg-type]
    return (trial.tears(4) if torn else trial).cut()
