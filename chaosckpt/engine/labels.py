"""Labels: in which save or recovery, and in which stage of it, a rank's operations fall."""

from __future__ import annotations

from chaosckpt.engine.messages import Mark, Report
from chaosckpt.model.journal import Acknowledged, Finished, Recovered, RecoveryStarted, SaveStarted
from chaosckpt.model.operation import Operation


class Phase:
    """What one rank is doing now, by its reports: "start", "recover", "train" or "save" of a step.

    Stages come from the target's marks. Without marks a save is all `persist`, and a recovery is `discover` until it first reads
    a file's content, then `load`. Operations after a save's acknowledgement and before the next report still belong to that save.
    """

    def __init__(self) -> None:
        self.name = "start"
        self.step: int | None = None
        self.stage = ""
        self._marked = False

    def report(self, report: Report) -> None:
        """Take note of a report of this rank."""
        match report:
            case RecoveryStarted():
                self.name, self.step, self.stage, self._marked = "recover", None, "discover", False
            case Recovered():
                self.name, self.stage = "train", ""
            case SaveStarted():
                self.name, self.step, self.stage, self._marked = "save", report.step, "persist", False
            case Mark():
                self.stage, self._marked = report.stage, True
            case Acknowledged() | Finished():
                pass

    def see(self, operation: Operation) -> None:
        """Take note of an operation of this rank, before its label is asked."""
        if self.name == "recover" and not self._marked and operation.address.op == "read":
            self.stage = "load"

    @property
    def label(self) -> str:
        """In words, as in "persist of save 4"."""
        if self.name == "recover":
            return f"{self.stage} of the recovery"
        return f"{self.stage} of save {self.step}" if self.name == "save" else self.name
