"""Arenas: a directory is left only where an arena stands in it, and every tier is emptied on the node that has it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from chaosckpt.engine.runner.arena import Arena, new_directory
from chaosckpt.engine.runner.command_arena import CommandArena
from chaosckpt.engine.runner.node_client import Node


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_arena_that_can_not_be_made_leaves_no_directory(tmp_path: Path, error: type[BaseException]) -> None:
    """Goal: neither an error nor an interrupt while nodes start leaves anything on storage."""

    def fail() -> None:
        with new_directory(str(tmp_path)) as directory:
            (directory / "logs").mkdir()
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []
    with new_directory(str(tmp_path)) as directory:
        pass
    assert list(tmp_path.iterdir()) == [directory]


class Emptied:
    """A node that notes what it is told to empty."""

    def __init__(self) -> None:
        self.directories: list[list[str]] = []

    def reset(self, directories: list[str]) -> None:
        self.directories.append(list(directories))


def test_a_reset_empties_every_tier_where_it_lies() -> None:
    """Goal: node-local tiers by the node that carries them, shared ones once; a command has shared ones alone."""
    first, second, command = Emptied(), Emptied(), Emptied()
    Arena([cast(Node, first), cast(Node, second)], Path("/a"), Path("/l")).reset()
    assert first.directories == [["/l/node-0"], ["/a/shared"]]
    assert second.directories == [["/l/node-1"]]
    CommandArena([cast(Node, command)], Path("/a"), Path("/a")).reset()
    assert command.directories == [["/a/out", "/a/tmp"]]
