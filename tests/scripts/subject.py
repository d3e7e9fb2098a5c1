"""A script by its scenario: its golden runs, and single faults in it, each judged by the oracle."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.preparation import deadlines_of, prepare
from chaosckpt.engine.subjects import subject_of
from chaosckpt.faults.cut import Cut
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.verdict import Verdict
from chaosckpt.scenario.load import read

SCRIPTS = Path(__file__).parents[2] / "scenarios" / "scripts"


class Subject:
    """One script, warm after its golden runs, with `more` words and these `signs`. `close` ends what it started."""

    def __init__(
        self, path: Path, more: Sequence[str] = (), signs: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        scenario = read(path)
        assert scenario.command is not None
        # This very interpreter, whatever `python` means on the PATH.
        argv = (sys.executable, *scenario.command.argv[1:], *more)
        command = msgspec.structs.replace(scenario.command, argv=argv, **signs)
        scenario = msgspec.structs.replace(scenario, command=command)
        self.prepared = prepare(scenario)
        subject = subject_of(scenario, self.prepared)
        self.scenario = subject.scenario
        self._arena = subject.open_arena()
        self._executor = Executor(
            subject,
            self._arena,
            deadlines_of(self.prepared.census),
            SharedExclusiveLock(),
            lambda trial, event: None,
        )

    def close(self) -> None:
        self._arena.close()

    def address(self, op: str, path: str, *, step: int | None = None, nth: int | None = None) -> Address:
        """The last operation of this name on this path in the golden run; of one save, and the nth on the open file, where told."""
        return [
            point.address
            for point in self.prepared.census.main.points
            if (point.address.op, point.address.path) == (op, path)
            and step in (None, point.label.step)
            and nth in (None, point.address.nth)
        ][-1]

    def killed_before(self, op: str, path: str) -> Verdict:
        """The verdict of a trial whose first launch is killed before the last operation of this name on this path."""
        return self.struck(Cut((Trigger(self.address(op, path), "before"),)))

    def killed_after(self, op: str, path: str) -> Verdict:
        """The same, killed right after it."""
        return self.struck(Cut((Trigger(self.address(op, path), "after"),)))

    def struck(self, fault: Fault) -> Verdict:
        """The verdict of a trial with this fault in its first launch."""
        return self._executor.run(Schedule((AttemptPlan((fault,)),)), "0:0").verdict
