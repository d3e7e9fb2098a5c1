"""Whose storage directories are swept: those of dead processes of this machine, whose numbers mean the same here."""

from __future__ import annotations

import os
from pathlib import Path

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
