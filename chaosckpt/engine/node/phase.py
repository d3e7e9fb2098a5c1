"""Phases: in which save or recovery, and in which stage of it, a rank's operations fall; where there is no gate, its reports."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from chaosckpt.commands.labels import BEGINS
from chaosckpt.commands.naming import Naming
from chaosckpt.commands.rolling import SaveCounter, nth_number
from chaosckpt.engine.wire.reports import Report, StageMark
from chaosckpt.model.journal import Acknowledged, Finished, Recovered, RecoveryStarted, SaveStarted
from chaosckpt.model.operation import MARK, Address, Operation


class Phase:
    """What the ranks of one process tree are doing now: "start", "recover", "train" or "save" of a step."""

    def __init__(self) -> None:
        self.name = "start"
        self.step: int | None = None
        self.stage = ""

    def report(self, report: Report) -> None:
        """Take note of a report."""

    def see(self, operation: Operation) -> None:
        """Take note of an operation, before its label is asked."""

    def step_of(self, operation: Operation) -> int | None:
        """The step to whose save an operation belongs."""
        return self.step

    @property
    def label(self) -> str:
        """In words, as in "persist of save 4": what the rank itself is doing."""
        return self._words(self.step)

    def label_of(self, operation: Operation) -> str:
        """The same for one operation."""
        return self._words(self.step_of(operation))

    def _words(self, step: int | None) -> str:
        if self.name == "recover":
            return f"{self.stage} of the recovery"
        return f"{self.stage} of save {step}" if self.name == "save" else self.name


class ReportedPhase(Phase):
    """Told by what the rank reports.

    Stages come from the target's marks. Without marks a save is all `persist`, and a recovery is `discover` until it first reads
    a file's content, then `load`. Operations after a save's acknowledgement and before the next report still belong to that save.
    What a saver's thread or process does may belong to an earlier save, if its path says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marked = False
        self._started: list[int] = []

    def report(self, report: Report) -> None:
        match report:
            case RecoveryStarted():
                self.name, self.step, self.stage, self._marked = "recover", None, "discover", False
            case Recovered():
                self.name, self.stage = "train", ""
            case SaveStarted():
                self.name, self.step, self.stage, self._marked = "save", report.step, "persist", False
                self._started.append(report.step)
            case StageMark():
                self.stage, self._marked = report.stage, True
            case Acknowledged() | Finished():
                pass

    def see(self, operation: Operation) -> None:
        if self.name == "recover" and not self._marked and operation.address.op == "read":
            self.stage = "load"

    def step_of(self, operation: Operation) -> int | None:
        """With saves under way beside training, the one that its path names.

        Of several numbers in the path the one with the most digits counts: `step-000001/__2_0` is of step 1.
        """
        if self.name != "save" or operation.address.role == "main" or len(self._started) < 2:
            return self.step
        numbers = re.findall(r"\d+", operation.address.path)
        named = max((number for number in numbers if int(number) in self._started), key=len, default=None)
        return self.step if named is None else int(named)


class ObservedPhase(Phase):
    """Told by a command's operations, as it reports nothing: it recovers until it first writes to a checkpoint, and then saves."""

    def __init__(self, naming: Naming | None, numbers: Sequence[int] = ()) -> None:
        super().__init__()
        self.name, self.stage = "recover", "discover"
        self._naming = naming
        self._numbers = numbers
        self._saves = SaveCounter(naming) if naming is not None and naming.rolling else None

    def see(self, operation: Operation) -> None:
        step = self._step(operation)
        if operation.address.op in BEGINS and step is not None:
            removes = operation.address.op in ("unlink", "rmdir") and self._retires(step, operation.address.path)
            if removes and self.step is None:
                return  # it clears away what it won't resume from
            self.name, self.stage = "save", "retire" if removes else "persist"
            self.step = self.step if removes else step
        elif self.name == "recover" and operation.address.op == "read":
            self.stage = "load"

    def _retires(self, step: int, path: str) -> bool:
        """Whether to remove this is retention: it is of another step, or the whole entry of the one that was saved last."""
        if self.step is None or step != self.step or self._naming is None or self._naming.rolling:
            return self.step is None or step < self.step
        found = re.search(self._naming.pattern, path)
        return found is not None and "/" not in path[found.end() :]

    def _step(self, operation: Operation) -> int | None:
        if self._naming is None:
            return None
        paths = (operation.destination, operation.address.path)
        step = next((found for path in paths if (found := self._naming.belongs(path)) is not None), None)
        if step is None or self._saves is None:
            return step
        self._saves.follow(operation)
        return nth_number(self._numbers, self._saves.nth[operation.address.rank])


class Boundaries:
    """Makes an operation `mark` of each report of one rank: it is held by leaving the report unanswered.

    Its path is the stage that begins or ends there, as in `stage:persist of save 4`; what a target does to its storage in
    between can't be told apart.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._sequence = itertools.count()
        self._seen: dict[str, int] = {}

    def operation(self, report: Report, phase: Phase) -> Operation:
        """The boundary that this report marks, `phase` having taken note of it."""
        path = f"stage:{report.__struct_config__.tag} in {phase.label}"  # an address: no class may rename it
        nth = self._seen.get(path, 0)
        self._seen[path] = nth + 1
        address = Address(self._rank, "main", MARK, path, 0, nth)
        return Operation(address=address, sequence=next(self._sequence), raw=path, result=0)
