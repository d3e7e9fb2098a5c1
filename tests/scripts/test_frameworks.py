"""Training scripts on frameworks: what is found in them, and what isn't, each by one kill at the operation that matters.

They need the extra `chaosckpt[frameworks]`, and are skipped where it isn't installed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from chaosckpt.faults.cut import Cut
from chaosckpt.model.fault import Trigger
from chaosckpt.model.verdict import Verdict
from tests.scripts.subject import SCRIPTS, Subject


def needs(framework: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(framework) is None, reason=f"needs {framework}: pip install 'chaosckpt[frameworks]'"
    )


@contextmanager
def subject(name: str, *more: str, **signs: object) -> Iterator[Subject]:
    """`more` words and other signs than the scenario's own."""
    found = Subject(SCRIPTS / f"{name}.toml", more, signs)
    try:
        yield found
    finally:
        found.close()


def broken(verdict: Verdict) -> list[str]:
    """The invariants that were broken, the primary one first."""
    return [violation.invariant for violation in (verdict.primary, *verdict.others) if violation is not None]


@needs("transformers")
def test_trainer_takes_a_directory_without_its_last_file_and_has_no_fallback() -> None:
    """Goal: a kill before trainer_state.json costs the whole job (C2, C3); one right after it costs nothing."""
    with subject("hf-trainer") as trainer:
        found = trainer.killed_before("open_write", "out:checkpoint-4/trainer_state.json")
        whole = trainer.killed_after("close", "out:checkpoint-4/trainer_state.json")
    assert found.primary is not None, found.reason
    assert broken(found)[0] == "newest-complete"
    assert found.primary.step == 2
    assert "trainer_state.json" in found.primary.sentence
    assert (whole.outcome, broken(whole)) == ("pass", []), whole


@needs("lightning")
def test_lightning_begins_an_epoch_s_data_anew() -> None:
    """Goal: resuming within an epoch ends elsewhere than an uninterrupted run, for which no fault is needed; nothing is torn (C6)."""
    with subject("lightning-last") as lightning:
        facts = lightning.prepared.facts
        found = lightning.killed_after("chmod", "out:ckpt-4.ckpt")  # last.ckpt is still that of step 2
        # The last.ckpt of step 6 is written, and doesn't have its name yet.
        moving = lightning.killed_before("rename", "tmp:tmp*")
    assert facts is not None
    assert "result" in facts.judged
    assert "exact" not in facts.judged
    for verdict in (found, moving):
        assert broken(verdict) == ["result-equal"], verdict
        assert verdict.primary is not None
        assert verdict.primary.error_type == "inexact-resume"


@needs("lightning")
@pytest.mark.skipif(
    os.stat("/dev/shm").st_dev == os.stat(tempfile.gettempdir()).st_dev, reason="needs a second file system, /dev/shm"
)
def test_lightning_saves_in_place_where_the_temporary_directory_is_on_another_file_system() -> None:
    """Goal: what Lightning writes there can't be renamed to its place, but is copied; a kill in it costs the job (C6)."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as other,
        subject("lightning-last", "--temporary", other, track=(other,)) as lightning,
    ):
        content = lightning.address("write", "out:last.ckpt", step=4, nth=0)
        found = lightning.struck(Cut((Trigger(content, "torn", 3000),)))
    assert broken(found) == ["newest-complete", "progress"], found
    assert found.primary is not None
    assert (found.primary.step, found.primary.error_type) == (2, "RuntimeError")


@needs("accelerate")
def test_accelerate_takes_a_directory_without_its_last_files() -> None:
    """Goal: a kill within a save costs the job, though the checkpoint before is there (C2), or in silence its random numbers (C8)."""
    with subject("accelerate-state") as accelerate:
        gaps = accelerate.prepared.census.gaps
        found = accelerate.killed_before("open_write", "out:checkpoints/checkpoint_2/optimizer.bin")
        silent = accelerate.killed_before("open_write", "out:checkpoints/checkpoint_2/random_states_0.pkl")
        whole = accelerate.killed_after("close", "out:checkpoints/checkpoint_2/random_states_0.pkl")
    assert gaps == ()
    assert found.primary is not None
    assert broken(found)[0] == "newest-complete", found
    assert found.primary.step == 1
    assert "optimizer.bin" in found.primary.sentence
    assert broken(silent) == ["complete-only", "result-equal"], silent
    assert (whole.outcome, broken(whole)) == ("pass", []), whole


@needs("accelerate")
def test_accelerate_with_a_limit_of_one_keeps_none_while_it_saves() -> None:
    """Goal: retention before the new checkpoint is complete leaves nothing after a kill (C12, C16)."""
    with subject("accelerate-limit-1") as accelerate:
        gaps = accelerate.prepared.census.gaps
        found = accelerate.killed_after("rmdir", "out:checkpoints/checkpoint_1")
    assert {point.required for point in gaps} >= {0, 1, 2}
    assert all(point.found is None for point in gaps)
    assert "always-recoverable" in broken(found), found
