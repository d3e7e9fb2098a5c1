"""`init`: a starter that is valid, and that overwrites nothing."""

from __future__ import annotations

from chaosckpt import plugins
from chaosckpt.scenario import load as scenario


def test_the_starter_is_a_valid_scenario(run, tmp_path):
    """The scenario can be read, and its target loaded, as they are."""
    result = run("init", str(tmp_path / "new"))
    assert result.code == 0
    assert f"chaosckpt fuzz {tmp_path / 'new' / 'scenario.toml'}" in result.out
    found = scenario.read(tmp_path / "new" / "scenario.toml")
    assert plugins.target(found.target.use).__name__ == "MyTarget"


def test_nothing_is_overwritten(run, tmp_path):
    """A file that is there already is left alone, and the other one isn't written either."""
    (tmp_path / "my_target.py").write_text("mine")
    result = run("init", str(tmp_path))
    assert result.code == 2
    assert "my_target.py already exists and is not overwritten" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["my_target.py"]
    assert (tmp_path / "my_target.py").read_text() == "mine"


def test_a_directory_that_can_not_be_made(run, tmp_path):
    """A path through a file is refused in a sentence."""
    (tmp_path / "file").write_text("")
    assert "can't be written" in run("init", str(tmp_path / "file" / "new")).err
