"""Subjects: what is tested is asked of one object, whichever kind it is, and one place asks which."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from chaosckpt.engine.golden.command_facts import CommandFacts
from chaosckpt.engine.node import network
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.errors import UsageError
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import RunSettings, Scenario, TargetSettings
from chaosckpt.plugins import names
from tests.engine.scripts import python, scenario_of

TARGET = Scenario(name="t", target=TargetSettings(use="dcp"))


@pytest.fixture
def command(tmp_path: Path) -> Scenario:
    return scenario_of(python(tmp_path / "train.py", "{out}"), tmp_path)


def test_what_a_target_is(command: Scenario) -> None:
    """Goal: a registered target's golden runs hold again; those of a file of the user's own are made again for a replay."""
    subject = subject_of(TARGET)
    assert (subject.spreads, subject.cached, subject.needs_golden_runs, subject.launch()) == (True, True, False, "fork")
    own = msgspec.structs.replace(
        TARGET, target=TargetSettings(use="/my/target.py:Mine"), run=RunSettings(launch="exec")
    )
    assert subject_of(own).needs_golden_runs
    assert subject_of(own).launch() == "exec"
    assert set(subject.kinds()) == set(names("faults"))
    for what in ("drill", "measure"):
        subject.require_target(what)


def test_what_a_command_is(command: Scenario) -> None:
    """Goal: it has no nodes that could be lost, nothing of it is cached, and it can be neither drilled nor measured."""
    subject = subject_of(command)
    assert (subject.spreads, subject.cached, subject.needs_golden_runs) == (False, False, True)
    assert {"cut", "sigkill", "sigterm", "world-size"} <= set(subject.kinds())
    assert not {"node-loss", "bit-flip", "stale-save"} & set(subject.kinds())
    for what in ("drill", "measure"):
        with pytest.raises(UsageError, match=f"{what} needs a target"):
            subject.require_target(what)


@pytest.mark.parametrize(
    ("cold", "program", "launch"), [(False, "python", "fork"), (True, "python", "exec"), (False, "sh", "exec")]
)
def test_a_command_is_forked_only_where_it_is_a_plain_script(
    tmp_path: Path, cold: bool, program: str, launch: str
) -> None:
    """Goal: how it is launched is known before anything of it runs."""
    argv = (sys.executable, "t.py", "{out}") if program == "python" else ("sh", "-c", "true {out}")
    assert subject_of(scenario_of(argv, tmp_path, cold=cold)).launch() == launch


def test_what_golden_runs_have_told_belongs_to_the_subject(command: Scenario) -> None:
    """Goal: the glob that they took from the files is the scenario's from then on, and the modules warm every arena."""
    prepared = Prepared(
        census=Census(runs=()), modules=("json",), facts=CommandFacts(checkpoints="{out}/ckpt-*"), remarks=("r",)
    )
    subject = subject_of(command, prepared)
    assert subject.scenario.command is not None
    assert subject.scenario.command.checkpoints == "{out}/ckpt-*"
    assert subject.modules == ("json",)
    assert subject_of(TARGET, Prepared(census=Census(runs=()))).scenario == TARGET


def test_commands_that_share_a_network_run_one_at_a_time(command: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: side by side only where no port can be taken twice; else one worker, and the sentence that says why."""
    monkeypatch.setattr(network, "problem", lambda: "")
    assert subject_of(command).workers(4) == (4, "")
    assert command.command is not None
    online = msgspec.structs.replace(command, command=msgspec.structs.replace(command.command, allow_network=True))
    count, why = subject_of(online).workers(4)
    assert (count, "with --allow-network the command shares this machine's network, where" in why) == (1, True)
    monkeypatch.setattr(network, "problem", lambda: "a network namespace is refused (Operation not permitted)")
    count, why = subject_of(command).workers(4)
    assert (count, "refused (Operation not permitted)" in why) == (1, True)
    assert subject_of(command).workers(1) == (1, "")
    assert subject_of(TARGET).workers(4) == (4, "")
