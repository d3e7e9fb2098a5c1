"""Which files damage at rest can strike: those that the expected recovery reads, by their census paths."""

from __future__ import annotations

from chaosckpt.faults.scene import Scene

Place = tuple[str, int | None]
"""The path of a file as the census has it, and the node that holds it, None on shared storage."""


def read_files(scene: Scene) -> list[Place]:
    """The files that the recovery of this attempt reads, in the order of names."""
    if not scene.attempt or not scene.exact or scene.resumes_from is None:
        return []
    recovery = [p.address for p in scene.map.points if p.label.step is None]
    directories = {at.path for at in recovery if at.op == "list"}
    opened = [at for at in recovery if at.op == "open_read" and at.path not in directories]
    places = {(at.path, _node(scene, at.path, at.rank)) for at in opened}
    return sorted(places, key=lambda place: (place[0], place[1] or 0))


def _node(scene: Scene, path: str, rank: int) -> int | None:
    return None if path.startswith("shared:") else scene.topology.node_of(rank)


def evidence(done: tuple[str, ...]) -> str | None:
    """What was done, in one line; None where nothing was."""
    return "; ".join(done) or None


def on_node(node: int | None) -> str:
    """Where a node-local file lies, for people."""
    return "" if node is None else f" on node {node}"


def tier_of(path: str) -> str:
    """The tier of a path `tier:relative`."""
    return path.partition(":")[0]
