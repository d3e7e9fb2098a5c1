"""Storage directories: whose are swept (those of dead processes of this machine), and how a tier is copied and put back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from chaosckpt.engine.wire import storage


@pytest.mark.parametrize(
    ("changed", "removed"),
    [({}, True), ({"numbers": "pid:[1]"}, False), ({"host": "another machine"}, False), ({"began": None}, False)],
)
def test_only_what_is_known_to_be_dead_is_swept(tmp_path: Path, changed, removed):
    """Goal: a live run is left alone, also in another container, where its process number is nobody's or someone else's."""
    path = storage.make_below(str(tmp_path))
    owner = msgspec.json.decode((path / storage.MARK).read_bytes(), type=storage.Owner)
    assert owner.pid == os.getpid()
    dead = msgspec.structs.replace(owner, **({"began": "0"} if "began" not in changed else {}))
    named = {name: value for name, value in changed.items() if value is not None}
    (path / storage.MARK).write_bytes(msgspec.json.encode(msgspec.structs.replace(dead, **named)))
    assert storage.sweep(tmp_path) == ([path] if removed else [])
    assert path.exists() != removed


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    """A tier with a file in a directory, and a link."""
    tier = storage.make(tmp_path / "storage") / "shared"
    (tier / "step-2").mkdir(parents=True)
    (tier / "step-2" / "state.pt").write_bytes(b"two")
    (tier / "latest").symlink_to("step-2")
    return tier


def test_a_copy_and_its_tier_change_places_and_back(tier: Path):
    """Goal: an audit finds the storage of an earlier moment at its own place, and afterwards all is as it was."""
    copy = tier.with_name("shared.kept")
    assert storage.keep({tier: copy})
    (tier / "latest").unlink()
    (tier / "step-4").mkdir()
    inode = tier.stat().st_ino
    storage.exchange({tier: copy})
    assert sorted(path.name for path in tier.iterdir()) == ["latest", "step-2"]
    assert (tier / "latest" / "state.pt").read_bytes() == b"two"
    storage.exchange({tier: copy})
    assert sorted(path.name for path in tier.iterdir()) == ["step-2", "step-4"]
    assert tier.stat().st_ino == inode
    storage.discard([copy, copy])
    assert [path.name for path in tier.parent.iterdir() if path.name != storage.MARK] == ["shared"]


def _failing(*given: object, **named: object) -> None:
    raise shutil.Error("a file vanished")


@pytest.mark.parametrize("full", [True, False])
def test_what_cannot_be_copied_is_not_kept(tier: Path, monkeypatch: pytest.MonkeyPatch, full: bool):
    """Goal: without room, or where a copy fails, the trial goes on; what was copied already is gone again."""
    other = tier.with_name("local")
    other.mkdir()
    if full:
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1 << 20 if path == other else 1))
    else:
        copied = iter([shutil.copytree])
        monkeypatch.setattr("shutil.copytree", lambda *given, **named: next(copied, _failing)(*given, **named))
    copies = {tier: tier.with_name("shared.kept"), other: other.with_name("local.kept")}
    assert not storage.keep(copies)
    assert not any(copy.exists() for copy in copies.values())


def test_whatever_a_job_left_is_emptied(tier: Path):
    """Goal: a root that was removed, replaced by a link or a file, or locked, is an empty directory again; nothing else is touched."""
    precious = tier.parent.parent / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (tier / "step-2").chmod(0)
    tier.chmod(0)
    storage.empty(tier)
    assert list(tier.iterdir()) == []
    tier.rmdir()
    storage.empty(tier)
    tier.rmdir()
    tier.symlink_to(precious)
    storage.empty(tier)
    assert not tier.is_symlink()
    tier.rmdir()
    tier.write_text("a file")
    storage.empty(tier)
    assert tier.is_dir()
    assert (precious / "file").exists()


def test_a_root_that_is_gone_is_kept_and_put_back_as_an_empty_one(tier: Path):
    """Goal: an audit of an earlier moment at which a job had removed its root."""
    copy = tier.with_name("shared.kept")
    storage.clear(tier)
    assert storage.keep({tier: copy})
    tier.mkdir()
    (tier / "a").touch()
    storage.exchange({tier: copy})
    assert list(tier.iterdir()) == []
    storage.exchange({tier: copy})
    assert [path.name for path in tier.iterdir()] == ["a"]


def test_what_holds_no_content_is_still_told(tier: Path):
    """Goal: a pipe in a checkpoint's place doesn't stop the node for ever."""
    os.mkfifo(tier / "pipe")
    assert ("shared:pipe", 0, "special") in list(storage.manifest("shared", str(tier)))
