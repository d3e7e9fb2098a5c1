"""The save discipline of a training script: saves awaited or not, tried again, and what is audited when the script has left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.rank.audit import retained_steps
from chaosckpt.engine.runner.arena import node_settings
from chaosckpt.errors import PluginError, UsageError
from chaosckpt.faults.errno import StorageError
from chaosckpt.model import journal as j
from chaosckpt.model.journal import Journal
from tests.engine.case import Case, outcomes, scenario_of


@pytest.fixture(scope="module")
def warm() -> Iterator[Case]:
    """One arena for all scripts of this module."""
    case = Case(scenario_of("torch-save-atomic", ((1, 1),)))
    yield case
    case.close()


def script(warm: Case, use: str, **workload: object) -> Case:
    """The same arena with another target and another save discipline."""
    case = Case(scenario_of(use, ((1, 1),), workload=workload), warm.arena)
    warm.arena.nodes[0].use(node_settings(case.scenario, warm.arena.directory, gate=True))
    return case


def failing_sync(warm: Case) -> StorageError:
    """An error in the second save of rank 1."""
    if not warm.measured:
        script(warm, "torch-save-atomic")
    return StorageError(warm.trigger("fsync", rank=1, save=2))


def events(journal: Journal, kind: type, attempt: int = 0) -> list[Any]:
    return [event for event in journal.events if isinstance(event, kind) and event.attempt == attempt]


def test_a_failed_save_is_tried_again_in_the_same_process(warm: Case) -> None:
    """Goal: with retries, an error in a save ends nothing: every rank saves the step once more, and the audit loads it."""
    fault = failing_sync(warm)
    case = script(warm, "torch-save-atomic", retries=1)
    journal, verdict = case.run([fault])
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal)[0] == "finished"
    failed = events(journal, j.SaveFailed)
    assert {(event.rank, event.step, event.where) for event in failed} == {(0, 2, "save"), (1, 2, "save")}
    starts = [(event.rank, event.step) for event in events(journal, j.SaveStarted)]
    assert starts.count((0, 2)) == starts.count((1, 2)) == 2
    audited = {(event.rank, event.step) for event in events(journal, j.Audited) if event.digest is not None}
    assert audited == {(rank, step) for rank in (0, 1) for step in (2, 3)}


def test_without_retries_the_same_error_ends_the_attempt(warm: Case) -> None:
    """Goal: the control of the test above."""
    fault = failing_sync(warm)
    journal, verdict = script(warm, "torch-save-atomic").run([fault])
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal)[0] != "finished"
    assert not events(journal, j.SaveFailed)


@pytest.mark.parametrize(("manner", "acknowledged"), [("await", {1, 2, 3}), ("close", {1, 2}), ("exit", {1, 2})])
def test_a_script_may_leave_without_awaiting_its_last_save(warm: Case, manner: str, acknowledged: set[int]) -> None:
    """Goal: it is told of no save that it didn't await, and what it left behind in order is audited when the trial is over."""
    case = script(warm, "dcp-async", at_end=manner)
    journal, verdict = case.run()
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal) == ["finished"]
    assert {event.step for event in events(journal, j.Acknowledged)} == acknowledged
    assert len(events(journal, j.Finished)) == 2
    asked = [event.asked for event in events(journal, j.AuditEnded)]
    assert asked == ([] if manner == "await" else [(1, 2, 3)])
    if manner == "close":
        assert {event.step for event in events(journal, j.Audited) if event.digest is not None} == {1, 2, 3}


def test_what_is_under_way_is_told_after_each_save(warm: Case) -> None:
    """Goal: a script that lets two saves be outstanding reports each that its target has not finished; this target lets one."""
    case = script(warm, "dcp-async", outstanding=2)
    journal, verdict = case.run()
    assert verdict.outcome == "pass", verdict
    told = events(journal, j.Outstanding)
    assert {event.step for event in told} == {1, 2, 3}
    assert all(set(event.saves) <= {event.step} for event in told)


def test_every_step_is_traced_once_by_every_rank(warm: Case) -> None:
    """Goal: saves and the end carry the samples and the loss of each step since the one before."""
    case = script(warm, "torch-save-atomic", steps=5, save_every=2)
    journal, _ = case.run()
    for rank in (0, 1):
        told = [
            event for event in journal.events if isinstance(event, (j.SaveStarted, j.Finished)) and event.rank == rank
        ]
        assert [trace.step for event in told for trace in event.trained] == [1, 2, 3, 4, 5]
    left = next(event for event in reversed(journal.events) if isinstance(event, j.Reference))
    assert [step.step for step in left.steps] == [1, 2, 3, 4, 5]
    assert [bool(step.parts) for step in left.steps] == [False, True, False, True, True]


@pytest.mark.parametrize("answer", ["23", 7, [2.0, 3.0], [True], [None], [numpy.int64(2)]])
def test_what_is_no_list_of_steps_is_refused(answer: object) -> None:
    """Goal: a target that answers nonsense to `retained` is told so, in its rank; the node is never sent what it can't read."""
    with pytest.raises(PluginError, match=r"retained\(\) returned"):
        retained_steps(answer)


@pytest.mark.parametrize(("answer", "steps"), [(None, None), ([], ()), ([3, 2, 2], (3, 2, 2)), (range(2), (0, 1))])
def test_a_list_of_steps_may_have_any_order(answer: object, steps: object) -> None:
    """Goal: the control of the test above."""
    assert retained_steps(answer) == steps


def test_what_retention_removes_is_audited_as_it_was_acknowledged(warm: Case) -> None:
    """Goal: a save that was acknowledged after an error is loaded from storage as it was then, when a newer one has retired it."""
    fault = failing_sync(warm)
    case = Case(
        scenario_of("torch-save-atomic", ((1, 1),), target={"options": {"keep": 1}}, workload={"retries": 1}),
        warm.arena,
    )
    warm.arena.nodes[0].use(node_settings(case.scenario, warm.arena.directory, gate=True))
    journal, verdict = case.run([fault])
    assert verdict.outcome == "pass", verdict
    assert "durable-acknowledgement" in verdict.judged
    assert audited(journal) == {(None, 3), (2, 2)}
    assert sorted(path.name for path in warm.arena.directory.glob("shared*")) == ["shared"], "no copy is left"


def audited(journal: Journal) -> set[tuple[int | None, int]]:
    """For each step that the first attempt's audits loaded on both ranks: at whose acknowledgement, and the step."""
    found = [event for event in events(journal, j.Audited) if event.digest is not None]
    loaded = [(None if event.as_of is None else event.as_of.step, event.step) for event in found]
    return {one for one in loaded if loaded.count(one) == 2}


ODD = """
from torch.distributed.checkpoint.api import CheckpointException

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class Unloadable(TorchSaveAtomic):
    def recover(self, state, intent):
        own, self.load = self.load, super().load
        try:
            return super().recover(state, intent)
        finally:
            self.load = own

    def load(self, state, step):
        raise CheckpointException("nothing there", {})


class Unlisted(TorchSaveAtomic):
    def retained(self):
        raise RuntimeError("no list today")


class Listless(TorchSaveAtomic):
    def retained(self):
        return None


class Careless(Listless):
    def write(self, directory, shared_part, own_part):
        try:
            super().write(directory, shared_part, own_part)
        except OSError:
            (directory / f"rank-{self.rank}.pt").unlink()
"""


@pytest.fixture
def odd(tmp_path: Path) -> str:
    file = tmp_path / "odd.py"
    file.write_text(ODD)
    return str(file)


def test_a_load_that_raises_what_is_no_exception_has_failed(warm: Case, odd: str) -> None:
    """Goal: torch's CheckpointException derives from BaseException alone; an audit that meets it proves that the save is lost."""
    fault = failing_sync(warm)
    journal, verdict = script(warm, f"{odd}:Unloadable", retries=1).run([fault])
    assert verdict.primary is not None
    assert verdict.primary.invariant == "durable-acknowledgement", verdict
    assert {event.error_type for event in events(journal, j.Audited)} == {"CheckpointException"}


def test_a_target_that_cannot_list_what_it_retains_is_refused_before_any_trial(warm: Case, odd: str) -> None:
    """Goal: every audit of its trials would prove nothing, and its acknowledgements would pass for true."""
    case = script(warm, f"{odd}:Unlisted")
    with pytest.raises(UsageError, match=r"what the target retains .* RuntimeError: no list today"):
        measure(case.scenario, case.arena)


@pytest.mark.parametrize(("name", "outcome"), [("Listless", "pass"), ("Careless", "violation")])
def test_a_target_without_a_list_recovers_from_what_it_acknowledged(
    warm: Case, odd: str, name: str, outcome: str
) -> None:
    """Goal: without `retained` and `load`, recovery at the moment of the acknowledgement tells whether that was true."""
    fault = failing_sync(warm)
    journal, verdict = script(warm, f"{odd}:{name}", retries=1).run([fault])
    assert verdict.outcome == outcome, verdict
    assert verdict.gaps == ()
    if outcome == "pass":
        assert audited(journal) == {(2, 2), (3, 3)}
    else:
        assert verdict.primary is not None
        assert (verdict.primary.invariant, verdict.primary.step) == ("durable-acknowledgement", 2), verdict
