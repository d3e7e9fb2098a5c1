"""A schedule that destroys more than the guarantees cover is never held against the target, and never excuses wrong state."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.oracle import TargetView, check
from chaosckpt.oracle.facts.requirement import requirement
from chaosckpt.plugins import fault_kinds
from tests.oracle.journals import SCENARIO, TargetJournal, operation

KINDS = sorted(fault_kinds().items())


@pytest.fixture(params=KINDS, ids=[name for name, _ in KINDS])
def kind(request: pytest.FixtureRequest) -> type[Fault]:
    found: type[Fault] = request.param[1]
    return found


def struck(kind: type[Fault], guarantees: Iterable[Guarantee]) -> TargetJournal:
    """Attempt 0 saved step 2 on shared storage; then a fault of this kind struck; the closing attempt is launched."""
    name = str(kind.__struct_config__.tag)
    needs = tuple(sorted(kind.needs))
    plans = [[], [name]] if kind.between else [[name]]
    trial = TargetJournal(faults=plans, guarantees=guarantees).attempt().recovers(None).saves(2)
    if kind.between or kind.drops == "shared":
        trial.finishes().ends("finished")
    else:
        trial.fault(name, at=operation(), needs=needs)
        trial.exits(by="fault" if "process-crash" in needs or kind.ends == "rank" else "self").ends("failed")
    if kind.drops is not None:
        cause = {"shared": "shared-storage-loss"}.get(kind.drops, name)
        trial.events.append(
            j.StorageDestroyed(
                attempt=1,
                tier=kind.drops,
                node=None if kind.drops == "shared" else 0,
                files=3,
                cause=cause,  # type: ignore[arg-type]
            )
        )
    if kind.between:
        if kind.drops is None and "world-size-change" not in needs:
            trial.mutates("shared:step-000002/state.pt", damages="integrity" in needs)
        trial.events.append(j.FaultInjected(attempt=1, fault=0, kind=name, evidence="it struck", needs=needs))
    return trial.attempt((2, 1) if "world-size-change" in needs else None, closing=True)


def kind_of_requirement(trial: TargetJournal) -> str:
    view = TargetView(SCENARIO, trial.begins_recovery().journal())
    return requirement(view, view.attempts[-1]).kind


def test_within_the_guarantees_the_checkpoint_is_required(kind: type[Fault]) -> None:
    """A target that promises what the fault needs must recover, except from lost shared storage and from damaged files."""
    left = {"shared": "must-refuse"}.get(
        kind.drops or "", "may-recover" if "integrity" in kind.needs else "must-recover"
    )
    assert kind_of_requirement(struck(kind, {"process-crash", *kind.needs})) == left


def test_outside_the_guarantees_nothing_is_required(kind: type[Fault]) -> None:
    """A target that doesn't promise it is required to find no checkpoint, and where none can be left it must refuse."""
    if not kind.needs:
        return
    assert kind_of_requirement(struck(kind, set())) == ("must-refuse" if kind.drops == "shared" else "may-recover")


@pytest.mark.parametrize("promised", [True, False])
def test_wrong_state_is_never_excused(kind: type[Fault], promised: bool) -> None:
    """Whatever struck, and whatever was promised: a state that was never captured is a violation when it is loaded."""
    guarantees = {"process-crash", *kind.needs} if promised else set()
    trial = struck(kind, guarantees).recovers(2, variant="never captured").ends_well()
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    assert primary.invariant == "complete-only"


@pytest.mark.parametrize("promised", [True, False])
def test_right_state_is_always_right(kind: type[Fault], promised: bool) -> None:
    """The checkpoint itself, found again in spite of what struck, breaks nothing."""
    guarantees = {"process-crash", *kind.needs} if promised else set()
    verdict = check(SCENARIO, struck(kind, guarantees).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict


def test_error_in_the_recovery_itself_forgives_it() -> None:
    """Nothing is required of a recovery into which an error was injected, and everything of the next one."""
    trial = (
        TargetJournal(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut().attempt().begins_recovery()
    )
    trial.injects("EIO", operation(op="read"), "load of the recovery").raises("recover", "OSError", "EIO").ends(
        "failed"
    )
    view = TargetView(SCENARIO, trial.attempt(closing=True).begins_recovery().journal())
    assert [requirement(view, attempt).kind for attempt in view.attempts] == [
        "may-start",
        "may-recover",
        "must-recover",
    ]
