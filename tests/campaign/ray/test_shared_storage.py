from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.campaign.ray.placement import check_shared
from chaosckpt.errors import UsageError


class Seer:
    """A node that finds the paths of its machine below another root, as a machine with a disk of its own would."""

    def __init__(self, machine: str, root: Path) -> None:
        self.machine = machine
        self.root = root

    def witness(self, path: str, token: str, write: bool) -> str:
        there = self.root / Path(path).relative_to("/")
        if write:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(token)
            return ""
        if not there.exists():
            return f"{path}: No such file or directory"
        return "" if there.read_text() == token else f"{path} holds something else there"


def test_nodes_that_see_one_directory_pass(tmp_path) -> None:
    """Every node reads what the first one wrote."""
    check_shared([Seer("a", tmp_path), Seer("b", tmp_path)], Path("/scratch/run"))


def test_a_node_with_a_disk_of_its_own_is_named(tmp_path) -> None:
    """The sentence names the node, its machine and the key of the scenario to change."""
    nodes = [Seer("a", tmp_path / "a"), Seer("b", tmp_path / "a"), Seer("c", tmp_path / "c")]
    with pytest.raises(UsageError, match=r"node 2 \(c\) doesn't see what node 0 \(a\) wrote.*`shared` in \[storage\]"):
        check_shared(nodes, Path("/scratch/run"))


def test_the_same_path_on_another_disk_is_no_proof(tmp_path) -> None:
    """A file of that name with another content is not shared storage."""
    first, second = Seer("a", tmp_path / "a"), Seer("b", tmp_path / "b")
    second.witness("/scratch/run/witness", "from an earlier run", True)
    with pytest.raises(UsageError, match="holds something else there"):
        check_shared([first, second], Path("/scratch/run"))
