"""An arena: the nodes and the storage on which one trial after another runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.node_client import LocalNode, Node
from chaosckpt.engine.wire import storage
from chaosckpt.engine.wire.orders import NodeSettings
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario


class Arena:
    """Nodes of the topology, by number, and where each finds its tiers.

    `nodes[n]` carries node n. Without Ray one node process carries them all (the same object several times), with Ray each has its own;
    then `dedicated` is true, a lost node is really destroyed, and `replace(n)` returns the spare that takes its place.
    """

    node_tiers: tuple[str, ...] = ("local",)
    """The tiers of which each node has one of its own."""
    shared_tiers: tuple[str, ...] = ("shared",)
    """The tiers of which there is one, for all nodes."""

    def __init__(
        self,
        nodes: Sequence[Node],
        directory: Path,
        local_directory: Path,
        replace: Callable[[int], Node] | None = None,
    ) -> None:
        self.nodes = list(nodes)
        self.directory = directory
        self.local_directory = local_directory
        self._replace = replace
        self._lost: set[int] = set()

    @property
    def dedicated(self) -> bool:
        """Whether every node has a process of its own."""
        return self._replace is not None

    def tiers(self, node: int) -> dict[str, str]:
        """The directory of each storage tier, as node `node` sees it."""
        return {"local": str(self.local_directory / f"node-{node}"), "shared": str(self.directory / "shared")}

    def distinct(self, count: int | None = None) -> list[Node]:
        """Each node process that carries one of the first `count` nodes, once."""
        chosen = self.nodes if count is None else self.nodes[:count]
        return list({id(node): node for node in chosen}.values())

    def reset(self) -> None:
        """Empty every tier before a trial."""
        for node in self.distinct():
            numbers = [number for number, carrier in enumerate(self.nodes) if carrier is node]
            own = [self.tiers(number)[tier] for number in numbers for tier in self.node_tiers]
            if own:
                node.reset(own)
        self.nodes[0].reset([self.tiers(0)[tier] for tier in self.shared_tiers])

    def lose(self, node: int) -> None:
        """The node is gone, with all its processes. Its storage is dropped by the caller first."""
        self._lost.add(node)
        if self.dedicated:
            self.nodes[node].destroy()

    def replace_lost_nodes(self) -> None:
        """Put a spare where a node was lost."""
        for number in sorted(self._lost):
            if self._replace is not None:
                self.nodes[number] = self._replace(number)
        self._lost.clear()

    def close(self) -> None:
        """End every node process and remove the storage."""
        for node in self.distinct():
            node.close()
        for directory in dict.fromkeys((self.directory, self.local_directory)):
            storage.remove(directory)


def node_settings(
    scenario: Scenario,
    directory: Path,
    *,
    gate: bool,
    modules: tuple[str, ...] = (),
    import_path: tuple[str, ...] = (),
    nonces: tuple[str, ...] = (),
) -> NodeSettings:
    """What a node of this scenario needs to know; `directory` is where it keeps the ranks' logs."""
    return NodeSettings(
        target=scenario.target.use,
        options=scenario.target.options,
        workload=scenario.workload,
        launch=scenario.run.launch,
        gate=gate,
        modules=modules,
        import_path=import_path,
        nonces=nonces,
        directory=str(directory),
    )


@contextmanager
def new_directory(parent: str | None) -> Iterator[Path]:
    """A marked directory below `parent` (default: the temporary one) for an arena that is made in the block.

    The arena removes it when it is closed. Where it can't be made the directory is gone again, after an interrupt, too.
    """
    directory = storage.make_below(parent)
    try:
        yield directory
    except BaseException:  # an interrupt, too, must not leave it behind
        storage.remove(directory)
        raise


def open_local(
    scenario: Scenario,
    modules: tuple[str, ...] = (),
    *,
    gate: bool | None = None,
    nonces: tuple[str, ...] = (),
) -> Arena:
    """An arena for a target without Ray: one node process on this machine carries all nodes.

    `modules` are what ranks are known to import, `nonces` what is drawn anew in file names.
    `gate` None: as the scenario and this machine have it.
    """
    gated = gate_mode.choose(scenario) == "seccomp" if gate is None else gate
    with new_directory(scenario.storage.shared) as directory:
        logs = directory / "logs"
        logs.mkdir()
        node = LocalNode(node_settings(scenario, logs, gate=gated, modules=modules, nonces=nonces))
        return Arena([node] * scenario.topology.nodes, directory, directory)


def inventory(arena: Arena) -> tuple[tuple[str, int], ...]:
    """(`tier:path` with nonces decoded, bytes) of every file on the arena's storage, sorted; a file twice where two are."""
    found: list[tuple[str, int]] = []
    for number, node in enumerate(arena.nodes):
        tiers = arena.tiers(number)
        names = (*arena.node_tiers, *arena.shared_tiers) if number == 0 else arena.node_tiers
        found += node.inventory({name: tiers[name] for name in names})
    return tuple(sorted(found))


def storage_left(arena: Arena, census: Census, attempt: int) -> j.StorageLeft:
    """What lies on storage now, beside what the golden runs of `census` leave there."""
    found = inventory(arena)
    known = frozenset(census.left)
    return j.StorageLeft(
        attempt=attempt,
        files=len(found),
        bytes=sum(size for _, size in found),
        abandoned=tuple((path, size) for path, size in found if path not in known),
        bound_bytes=arena.nodes[0].facts.abandoned * census.save_bytes,
    )
