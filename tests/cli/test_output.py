"""Results go where they were asked for, and a place that can't hold them is told before anything is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaosckpt.cli import output
from chaosckpt.errors import UsageError


def test_no_page():
    """Nobody asked for one."""
    assert output.page(None) is None


def test_a_page_that_may_be_written(tmp_path: Path):
    """A new file, or one that is replaced; with a name of any letters."""
    path = tmp_path / "häß lich.html"
    assert output.page(str(path)) == path
    path.write_text("old")
    assert output.page(str(path)) == path


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "it is a directory"), ("no/page.html", "there is no directory"), ("old.html", "can't be written")],
)
def test_a_page_that_cannot_be_written(tmp_path: Path, monkeypatch, name, words):
    """Each is refused with the reason; what a user may write is the system's answer, which root is never refused."""
    (tmp_path / "old.html").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match=words):
        output.page(f"{tmp_path}/{name}")
