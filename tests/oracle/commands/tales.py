"""Journals of commands written by hand: what each launch found, said and left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chaosckpt.model import journal as j
from chaosckpt.model.checkpoints import UNSAVED
from chaosckpt.model.command import CommandSettings
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.commands.judgement import check_command, explain_command

SAVED = ("checkpoints", "resumed", "resumes", "saved", "result", "exact")
UNSAID = ("checkpoints", "resumed", "resumes", "result", "exact")
"""What golden runs have shown, with `--saved` and without it."""


def operation(path: str = "out:ckpt-4.pt", op: str = "write") -> Operation:
    return Operation(address=Address(0, "main", op, path, 1, 0), sequence=7, raw=path)


class Tale:
    """A trial of a command, told launch by launch. Checkpoints are files `out:ckpt-N.pt`."""

    def __init__(
        self,
        judged: Sequence[str] = SAVED,
        *,
        faults: Sequence[Sequence[str]] = (("cut",),),
        command: CommandSettings | None = None,
        guarantees: tuple[Guarantee, ...] = ("process-crash",),
    ) -> None:
        plan: dict[str, object] = {"attempts": [{"faults": [{"kind": kind} for kind in kinds]} for kinds in faults]}
        self.scenario = Scenario(name="told", command=command or CommandSettings(argv=("python", "train.py", "{out}")))
        self.events: list[j.AnyEvent] = [
            j.TrialStarted(
                trial="1:2",
                schedule=plan,
                guarantees=guarantees,
                scenario="told",
                total_steps=0,
                judged=tuple(judged),
                saves=(2, 4, 6),
            )
        ]
        self.number = -1
        self.lying: dict[int, str | None] = {}
        self.read: tuple[int, ...] | None = None
        self.spare: tuple[int, ...] = ()
        """The steps that lie under other names."""
        """The steps of which the next launches read files."""
        self._said: list[j.AnyEvent] = []

    def launch(self, *, closing: bool = False, ranks: int = 1) -> Tale:
        self.number += 1
        intent: j.Intent = "resume" if self.lying else "start"
        self.events.append(j.AttemptStarted(attempt=self.number, ranks=(ranks,), intent=intent, closing=closing))
        self._said = []
        return self

    def closes(self, *, ranks: int = 1) -> Tale:
        return self.launch(closing=True, ranks=ranks)

    def resumes(self, *steps: int | None) -> Tale:
        """Each a line that says so."""
        for step in steps:
            said = j.Said(attempt=self.number, what="resumed", step=step, line=f"resumed from step {step}")
            self._said.append(said)
        return self

    def saves(self, *steps: int, said: bool = True) -> Tale:
        """Each is complete on storage from now on."""
        for step in steps:
            self.lying[step] = None
        return self.says_saved(*steps) if said else self

    def says_saved(self, *steps: int) -> Tale:
        for step in steps:
            self._said.append(j.Said(attempt=self.number, what="saved", step=step, line=f"saved step {step}"))
        return self

    def tears(self, step: int, wrong: str | None = None) -> Tale:
        """Something of this step is there that isn't complete."""
        self.lying[step] = wrong or f"out:ckpt-{step}.pt"
        return self

    def saves_unknown(self, step: int) -> Tale:
        """A step that no golden run saved, such as on a signal."""
        return self.tears(step, UNSAVED)

    def removes(self, *steps: int) -> Tale:
        for step in steps:
            self.lying.pop(step, None)
        return self

    def fault(
        self,
        label: str = "persist of save 4",
        at: Operation | None = None,
        *,
        kind: str = "cut",
        needs: tuple[Guarantee, ...] = (),
    ) -> Tale:
        struck = at or operation()
        self.events.append(
            j.FaultInjected(
                attempt=self.number,
                fault=0,
                kind=kind,
                evidence="it struck",
                operation=struck,
                label=label,
                needs=needs,
            )
        )
        return self

    def error(self, label: str = "persist of save 4", at: Operation | None = None) -> Tale:
        """An error is injected that the command may survive."""
        struck = at or operation()
        self.events.append(j.ErrorInjected(attempt=self.number, rank=0, error="EIO", operation=struck))
        return self.fault(label, struck, kind="errno")

    def refused(self, what: str = "open_write of /home/u/.cache") -> Tale:
        self.events.append(j.Untraced(attempt=self.number, rank=0, what=f"{what} was refused", refused=True))
        return self

    def damaged(self, path: str = "out:ckpt-2.pt") -> Tale:
        event = j.StorageMutated(attempt=self.number, tier="out", node=None, path=path, what="a bit", damages=True)
        self.events.append(event)
        return self

    def killed(self) -> Tale:
        self.events.append(j.RankExited(attempt=self.number, rank=0, signal=9, by="fault"))
        return self._ends("killed")

    def cut(self, label: str = "persist of save 4") -> Tale:
        """The whole job is killed at an operation."""
        return self.fault(label).killed()

    def fails(self, tail: str = "ValueError: no", code: int | None = 1, signal: int | None = None) -> Tale:
        exited = j.RankExited(attempt=self.number, rank=0, exit_code=code, signal=signal, stderr_tail=tail)
        self.events.append(exited)
        return self._ends("failed")

    def hangs(self, *, confirmed: bool = True) -> Tale:
        self.events.append(j.RankExited(attempt=self.number, rank=0, signal=9, by="harness"))
        return self._ends("hung", confirmed=confirmed)

    def finishes(self, *, operations: int = 100, equal: bool | None = True) -> Tale:
        """It comes to its end; a closing launch is compared with the uninterrupted run, unless `equal` is None."""
        self.events.append(j.RankExited(attempt=self.number, rank=0, exit_code=0))
        self._ends("finished", operations=operations)
        last = next(at for at in reversed(self.events) if isinstance(at, j.AttemptStarted))
        if last.closing and equal is not None:
            seen = "aa" if equal else "bb"
            self.events.append(j.ResultCompared(attempt=self.number, equal=equal, expected="aa", seen=seen))
        return self

    def _ends(self, outcome: j.AttemptOutcome, *, confirmed: bool = False, operations: int = 80) -> Tale:
        self.events.append(
            j.AttemptEnded(attempt=self.number, outcome=outcome, confirmed=confirmed, operations=(operations,))
        )
        self.events += self._said
        self.events.append(msgspec.structs.replace(seen(self.number, self.lying), read=self.read, spare=self.spare))
        return self

    def journal(self) -> j.Journal:
        return j.Journal((*self.events, j.TrialEnded()))

    def verdict(self) -> Verdict:
        return check_command(self.scenario, self.journal())

    def explained(self) -> str:
        return explain_command(self.scenario, self.journal())


def seen(attempt: int, lying: Mapping[int, str | None]) -> j.CheckpointsSeen:
    """What the harness tells of storage."""
    return j.CheckpointsSeen(
        attempt=attempt,
        complete=tuple(step for step, wrong in sorted(lying.items()) if wrong is None),
        partial=tuple(step for step, wrong in sorted(lying.items()) if wrong is not None),
        differing={step: wrong for step, wrong in sorted(lying.items()) if wrong is not None},
    )


def violated(tale: Tale) -> tuple[str, str]:
    """(invariant, word) of the primary violation; empty where there is none."""
    primary = tale.verdict().primary
    return (primary.invariant, primary.error_type) if primary is not None else ("", "")


def all_violated(tale: Tale) -> set[str]:
    """The invariants that a trial breaks."""
    verdict = tale.verdict()
    return {found.invariant for found in (verdict.primary, *verdict.others) if found is not None}


def killed_in_save_4(*, torn: bool = True, judged: Sequence[str] = SAVED, **more: object) -> Tale:
    """A first launch that saved step 2 and was killed while it saved step 4, of which something is left."""
    tale = Tale(judged, **more).launch().saves(2)  # type: ignore[arg-type]
    return (tale.tears(4) if torn else tale).cut()
