"""Labels: in which save or recovery, and in which stage of it, a rank's operations fall."""

from __future__ import annotations

import re

from chaosckpt.engine.wire.reports import Mark, Report
from chaosckpt.model.journal import Acknowledged, Finished, Recovered, RecoveryStarted, SaveStarted
from chaosckpt.model.operation import Operation


class Phase:
    """What one rank is doing now, by its reports: "start", "recover", "train" or "save" of a step.

    Stages come from the target's marks. Without marks a save is all `persist`, and a recovery is `discover` until it first reads
    a file's content, then `load`. Operations after a save's acknowledgement and before the next report still belong to that save.
    What a saver's thread or process does may belong to an earlier save, if its path says so.
    """

    def __init__(self) -> None:
        self.name = "start"
        self.step: int | None = None
        self.stage = ""
        self._marked = False
        self._started: list[int] = []

    def report(self, report: Report) -> None:
        """Take note of a report of this rank."""
        match report:
            case RecoveryStarted():
                self.name, self.step, self.stage, self._marked = "recover", None, "discover", False
            case Recovered():
                self.name, self.stage = "train", ""
            case SaveStarted():
                self.name, self.step, self.stage, self._marked = "save", report.step, "persist", False
                self._started.append(report.step)
            case Mark():
                self.stage, self._marked = report.stage, True
            case Acknowledged() | Finished():
                pass

    def see(self, operation: Operation) -> None:
        """Take note of an operation of this rank, before its label is asked."""
        if self.name == "recover" and not self._marked and operation.address.op == "read":
            self.stage = "load"

    def step_of(self, operation: Operation) -> int | None:
        """The step to whose save an operation belongs: with saves under way beside training, the one that its path names.

        Of several numbers in the path the one with the most digits counts: `step-000001/__2_0` is of step 1.
        """
        if self.name != "save" or operation.address.role == "main" or len(self._started) < 2:
            return self.step
        numbers = re.findall(r"\d+", operation.address.path)
        named = max((number for number in numbers if int(number) in self._started), key=len, default=None)
        return self.step if named is None else int(named)

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
