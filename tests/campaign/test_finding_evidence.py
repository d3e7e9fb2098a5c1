"""What a finding's folder keeps beside its journal: stored files, code, versions."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from chaosckpt.campaign.findings import storage_copy
from chaosckpt.campaign.findings.code import excerpts, scripts_of, target_place
from chaosckpt.campaign.findings.evidence import addresses, described, versions
from chaosckpt.campaign.findings.storage_copy import StorageWatch
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.faults.cut import Cut
from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import CommandSettings, Scenario, TargetSettings
from chaosckpt.model.topology import Topology


def arena(directory: Path) -> Arena:
    """As much of an arena as is looked at: two nodes with their tiers."""
    found = SimpleNamespace(
        nodes=[None, None],
        tiers=lambda node: {"local": str(directory / f"node-{node}"), "shared": str(directory / "shared")},
    )
    return cast(Arena, found)


@pytest.fixture
def tiers(tmp_path: Path) -> Path:
    for name in ("node-0", "node-1", "shared/step-2"):
        (tmp_path / "tiers" / name).mkdir(parents=True)
    (tmp_path / "tiers/shared/step-2/a.pt").write_bytes(b"\x00\xff123")
    (tmp_path / "tiers/node-1/b.pt").write_bytes(b"1")
    (tmp_path / "tiers/shared/latest").symlink_to("step-2")
    return tmp_path / "tiers"


def test_every_tier_is_copied_as_the_attempt_finds_it(tmp_path, tiers):
    """Files, links and node-local storage, by the attempt; the first one finds nothing and begins the replay anew."""
    watch = StorageWatch(tmp_path / "copies")
    watch.observe(1, arena(tiers))
    (tiers / "shared/step-2/a.pt").write_bytes(b"later")
    watch.observe(2, arena(tiers))
    stored = watch.stored(1)
    assert [(entry.path, entry.kind, entry.bytes) for entry in stored.files if entry.kind != "directory"] == [
        ("local-1/b.pt", "file", 1),
        ("shared/latest", "link", 0),
        ("shared/step-2/a.pt", "file", 5),
    ]
    assert not stored.missing
    watch.keep(1, tmp_path / "storage")
    assert (tmp_path / "storage/shared/latest/a.pt").read_bytes() == b"\x00\xff123"
    assert (tmp_path / "storage/local-0").is_dir()
    watch.observe(0, arena(tiers))
    assert watch.stored(1).missing
    assert not (tmp_path / "copies").exists()


def test_why_there_is_no_copy(tmp_path, tiers, monkeypatch):
    """Too much, elsewhere, or bound to its place: the listing stays, and the reason is kept."""
    watch = StorageWatch(tmp_path / "copies")
    monkeypatch.setattr(storage_copy, "LARGEST_BYTES", 3)
    watch.observe(1, arena(tiers))
    assert "at most" in watch.stored(1).missing
    assert watch.stored(1).files
    monkeypatch.undo()
    (tiers / "shared/bound.pt").write_bytes(b"\xff" + os.fsencode(tiers / "shared"))
    watch.observe(1, arena(tiers))
    assert "absolute path" in watch.stored(1).missing
    (tiers / "shared/bound.pt").write_text(f"newest: {tiers / 'shared'}/step-2")
    watch.observe(1, arena(tiers))
    assert watch.stored(1).mentions == ("shared/bound.pt",)
    watch.observe(1, arena(tmp_path / "elsewhere"))
    assert "another machine" in watch.stored(1).missing


def test_a_targets_code_is_read_from_its_class_or_its_base():
    """`save` and `recover` of a registered target, without importing it; of an heir, those of its base."""
    assert target_place("dcp-overwrite")[2] == "DcpOverwrite"
    save, recover = excerpts(Scenario(name="s", target=TargetSettings(use="dcp-overwrite")))
    assert save.title == "`save` of DcpOverwrite"
    assert "state_dict_saver.save(" in save.text
    assert '"""' not in save.text
    assert recover.text.startswith("def recover(self")
    inherited, _ = excerpts(Scenario(name="s", target=TargetSettings(use="canary-in-place")))
    assert "torch.save(value, path)" in inherited.text
    assert "inherits" in inherited.title


def test_a_targets_file_is_read(tmp_path):
    """A class in a file of the user's own, whose base stands in the file beside it; a file that can't be parsed tells nothing."""
    (tmp_path / "base_of_mine.py").write_text("class Base:\n    def save(self):\n        pass\n")
    mine = tmp_path / "mine.py"
    mine.write_text("from base_of_mine import Base\nclass Mine(Base):\n    def recover(self):\n        return 1\n")
    found = excerpts(Scenario(name="s", target=TargetSettings(use=f"{mine}:Mine")))
    assert [excerpt.text for excerpt in found] == ["def save(self):\n    pass", "def recover(self):\n    return 1"]
    mine.write_text("class Mine(")
    assert excerpts(Scenario(name="s", target=TargetSettings(use=f"{mine}:Mine"))) == ()


def test_a_long_script_is_told_by_the_lines_that_save_and_load(tmp_path):
    """With their numbers; a short one is shown whole."""
    command = CommandSettings(argv=(sys.executable, "train.py", "{out}"), directory=str(tmp_path))
    (tmp_path / "train.py").write_text("import torch\ntorch.save(\n    1,\n    'a')\n" + "x = 1\n" * 80)
    assert scripts_of(command) == {"train.py": "train.py"}
    line, lines = excerpts(Scenario(name="c", command=command))
    assert line.text == f"{Path(sys.executable).name} train.py {{out}}"
    assert lines.text.splitlines() == ["   2  torch.save(", "   3      1,", "   4      'a')"]
    (tmp_path / "train.py").write_text("import torch\n")
    assert excerpts(Scenario(name="c", command=command))[1].text == "import torch"


def test_versions_are_told_in_collect_envs_words():
    """Found without importing torch."""
    found = versions()
    assert f"PyTorch version: {version('torch')}" in found
    assert any(line.startswith(f"Python version: {platform.python_version()}") for line in found)


def test_faults_are_told_with_the_label_that_golden_runs_agree_on():
    """The exact address is kept beside the phrase."""
    address = Address(0, "main", "write", "shared:a", 1, 0)
    run = GoldenRun(topology=Topology((1,)), resumed_from=None, points=(Point(address, Label("persist", 4)),))
    fault = Cut((Trigger(address),))
    said = described(fault, Census(runs=(run,)))
    assert said.endswith("before rank 0's first write to a, while saving step 4")
    assert addresses(fault) == (str(address),)
    other = msgspec.structs.replace(run, points=(Point(address, Label("persist", 6)),), resumed_from=2)
    assert described(fault, Census(runs=(run, other))).endswith("before rank 0's first write to a")
