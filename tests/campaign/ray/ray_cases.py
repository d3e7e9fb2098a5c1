"""Scenarios, schedules and looks at processes for the tests of the Ray layer."""

from __future__ import annotations

from collections.abc import Callable

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import Scenario, TargetSettings, WorkloadSettings
from chaosckpt.model.schedule import AttemptPlan, Schedule

SCENARIO = Scenario(
    name="ray", target=TargetSettings(use="dcp"), workload=WorkloadSettings(steps=4, save_every=2, hidden=4, layers=1)
)
"""Two nodes with one rank each; step 2 and step 4 are saved."""
SUBJECT = TargetSubject(SCENARIO, referenced=False)
IN_SECOND_SAVE = Trigger(Address(1, "main", "write", "shared:step-000004/__1_0.distcp", 1, 0))
CUT = Cut((IN_SECOND_SAVE,))
SIGKILL = Sigkill(IN_SECOND_SAVE)
NODE_LOSS = NodeLoss(IN_SECOND_SAVE, group=1)


def trial(arena: Arena, fault: Fault, write: Callable[[j.AnyEvent], None] = lambda event: None) -> j.Journal:
    """One trial with one fault. The job is small, and patience is large, since the machine may be busy."""
    schedule = Schedule((AttemptPlan((fault,)),))
    return run_trial(SUBJECT, schedule, arena, trial="1:0", deadlines=Deadlines(golden_seconds=5), write=write)


def story(journal: j.Journal) -> dict[str, object]:
    """What a trial with one fault in its second save must come to: everybody went on from the first one."""
    recovered = {
        event.rank: event.chosen for event in journal.events if isinstance(event, j.Recovered) and event.attempt == 1
    }
    return {
        "landed": [event.kind for event in journal.events if isinstance(event, j.FaultInjected)],
        "outcomes": [event.outcome for event in journal.events if isinstance(event, j.AttemptEnded)],
        "recovered": [recovered.get(0), recovered.get(1)],
        "finished": sorted(event.rank for event in journal.events if isinstance(event, j.Finished)),
    }


def expected(kind: str) -> dict[str, object]:
    return {"landed": [kind], "outcomes": ["killed", "finished"], "recovered": [2, 2], "finished": [0, 1]}


def lives(pid: int) -> bool:
    """Whether a process runs; a zombie doesn't."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
