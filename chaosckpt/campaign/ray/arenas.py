"""Arenas on a Ray cluster: which node actors they are made of, and which spares wait to take over."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from chaosckpt.campaign.ray.boot import Boot
from chaosckpt.campaign.ray.cluster import Cluster
from chaosckpt.campaign.ray.nodes import RayNode
from chaosckpt.campaign.ray.placement import SPARE, Placement, check_shared, place, room
from chaosckpt.engine.runner.arena import Arena, node_settings
from chaosckpt.engine.wire import storage
from chaosckpt.errors import ChaosckptError, HarnessError
from chaosckpt.model.scenario import Scenario


class RayArena(Arena):
    """An arena whose nodes are actors; each finds its node-local storage in its own `home`."""

    def __init__(self, nodes: list[RayNode], directory: Path, replace: Callable[[int], RayNode]) -> None:
        super().__init__(nodes, directory, directory, replace)

    @property
    def actors(self) -> list[RayNode]:
        """The nodes, as what they are."""
        return cast(list[RayNode], self.nodes)

    def tiers(self, node: int) -> dict[str, str]:
        """See Arena.tiers."""
        return {"local": f"{self.actors[node].home}/local", "shared": str(self.directory / "shared")}

    def renew(self, nodes: list[RayNode]) -> None:
        """Take other nodes instead of all that there were."""
        self.nodes[:] = nodes
        self._lost.clear()


class RayArenas:
    """`count` arenas for one scenario, booted in the background, and warm spares, booted after them.

    Shared storage is made below `directory` (default: the temporary directory), which every machine of the cluster must see.
    `modules` of a warm node of the same target spare the first one its rehearsal. `spares` is how many warm nodes wait for the
    loss of another one (default: one for every two arenas); with 0, a lost node's successor is booted when it is needed.
    Raises UsageError where shared storage can't be made.
    """

    def __init__(
        self,
        cluster: Cluster,
        scenario: Scenario,
        count: int,
        directory: Path | None = None,
        *,
        modules: tuple[str, ...] = (),
        import_path: tuple[str, ...] = (),
        nonces: tuple[str, ...] = (),
        gate: bool = True,
        spares: int | None = None,
    ) -> None:
        settings = node_settings(scenario, Path(), gate=gate, modules=modules, import_path=import_path, nonces=nonces)
        self._boot = Boot(cluster, settings, scenario.storage.local)
        self._cluster = cluster
        self._size = scenario.topology.nodes
        self._cpus = room(cluster, count * self._size)
        self._name = f"{cluster.session}-{secrets.token_hex(3)}"
        self._spares_wanted = (count + 1) // 2 if spares is None else spares
        self._spares: list[Future[RayNode]] = []
        self._placements: dict[int, Placement] = {}
        self._lock = threading.Lock()
        self._closed = False
        shared = None if directory is None else str(directory)
        self._directories = [storage.make_below(shared) for _ in range(count)]
        threads = 2 * count * (self._size + 1) + self._spares_wanted
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="chaosckpt-boot")
        self._arenas = [self._executor.submit(self._build, number) for number in range(count)]
        self._executor.submit(self._stock)

    def __enter__(self) -> RayArenas:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def arena(self, number: int) -> RayArena:
        """Arena `number`, from 0, once it is up. Raises UsageError or HarnessError where it can't be."""
        if self._closed:
            raise HarnessError("the arenas are closed")
        return self._arenas[number].result()

    @property
    def modules(self) -> tuple[str, ...]:
        """What ranks import, known once the first node is warm; for the next pool of the same target."""
        return self._boot.modules

    def rebuild(self, number: int) -> RayArena:
        """After harness trouble: the same arena with new nodes in place of all that it had. Raises as `arena` does."""
        arena = self.arena(number)
        _each(RayNode.destroy, arena.actors)
        arena.renew(self._boot_nodes(number))
        return arena

    def close(self) -> None:
        """End every node and remove all storage. Boots that are under way are given up."""
        self._closed = True
        self._boot.give_up()
        self._executor.shutdown(wait=True, cancel_futures=True)
        nodes = [node for arena in _results(self._arenas) for node in arena.actors]
        _each(RayNode.close, [*nodes, *_results(self._spares)])
        for placement in self._placements.values():
            placement.free()
        for directory in self._directories:
            storage.remove(directory)

    # Arenas

    def _build(self, number: int) -> RayArena:
        nodes = self._boot_nodes(number)
        directory = self._directories[number]
        try:
            check_shared(nodes, directory)
        except ChaosckptError:
            _each(RayNode.close, nodes)
            raise
        return RayArena(nodes, directory, lambda node: self._replace(number, node))

    def _boot_nodes(self, number: int) -> list[RayNode]:
        """All nodes of an arena, each settled in its place; where one can't be had, none is left."""
        if number in self._placements:
            self._placements.pop(number).free()
        placement = self._placements[number] = place(self._cluster, self._size, self._cpus)
        futures = [self._executor.submit(self._boot.node, placement.options(node)) for node in range(self._size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        nodes = _results(futures)
        try:
            if errors:
                raise errors[0]
            for index, node in enumerate(nodes):
                node.settle(self._place(number, index))
        except ChaosckptError:
            _each(RayNode.close, nodes)
            raise
        return nodes

    def _place(self, number: int, node: int) -> str:
        return f"{self._name}-arena-{number}-node-{node}"

    # Spares

    def _stock(self) -> None:
        """Order the spares, once the arenas are up: until then they would only be slower."""
        for arena in self._arenas:
            arena.exception()
        with self._lock:
            self._order()

    def _order(self) -> None:
        while len(self._spares) < self._spares_wanted:
            self._spares.append(self._executor.submit(self._boot.node, dict(SPARE)))

    def _replace(self, number: int, node: int) -> RayNode:
        """A spare takes the place of a lost node, without anything that was stored there; another one is ordered."""
        while (spare := self._take()) is not None:
            try:
                spare.settle(self._place(number, node))
            except HarnessError:
                spare.destroy()  # it died while it waited
                continue
            return spare
        fresh = self._boot.node(dict(SPARE))
        fresh.settle(self._place(number, node))
        return fresh

    def _take(self) -> RayNode | None:
        """The spare that is ready, or will be first; None when there is none, or it could not be booted."""
        with self._lock:
            if not self._spares:
                return None
            chosen = next((spare for spare in self._spares if spare.done()), self._spares[0])
            self._spares.remove(chosen)
            self._order()
        try:
            return chosen.result()
        except ChaosckptError:
            return None


def _results(futures: Iterable[Future[Any]]) -> list[Any]:
    """The results of those that have succeeded."""
    done = [future for future in futures if future.done() and not future.cancelled()]
    return [future.result() for future in done if future.exception() is None]


def _each(act: Callable[[RayNode], None], nodes: list[RayNode]) -> None:
    """Do it to all nodes at once; ending one takes a while."""
    if nodes:
        with ThreadPoolExecutor(len(nodes)) as executor:
            list(executor.map(act, nodes))
