"""Where the nodes of an arena stand in a Ray cluster, and whether they really see one shared storage there."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import tenacity

from chaosckpt.campaign.ray.cluster import Cluster, imported_ray
from chaosckpt.errors import HarnessError, UsageError

_STRICT_SECONDS = 10.0
_PLACE_SECONDS = 60.0


class Placement(msgspec.Struct, frozen=True):
    """A reserved place for each node of one arena; `cpus` is what each takes."""

    group: Any
    cpus: float

    def options(self, node: int) -> dict[str, Any]:
        """Options by which an actor takes the place of this node."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=node)
        return {"num_cpus": self.cpus, "scheduling_strategy": strategy}

    def free(self) -> None:
        """Give the places back; actors that still stand there end."""
        from ray.util import remove_placement_group

        remove_placement_group(self.group)


SPARE: dict[str, Any] = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
"""Options for a spare: it idles until a lost node leaves it a share of the machine."""


def room(cluster: Cluster, actors: int) -> float:
    """CPUs for each of so many actors: one, or an even share where there are fewer. In a cluster of our own it counts for nothing."""
    if cluster.own:
        return 0.01
    return max(0.01, min(1.0, math.floor(100 * cluster.cpus / actors) / 100))


def place(cluster: Cluster, nodes: int, cpus: float) -> Placement:
    """Reserve places for the nodes of one arena. Raises HarnessError where the cluster has no room.

    On a cluster each node gets a machine of its own where there are enough; a strict spread over too few would wait for ever.
    """
    imported_ray()
    from ray.util import placement_group, remove_placement_group

    if cluster.own:
        strategies = ["PACK"]
    else:
        strategies = ["STRICT_SPREAD", "SPREAD"] if 1 < nodes <= cluster.machines() else ["SPREAD"]
    for strategy in strategies:
        group = placement_group([{"CPU": cpus}] * nodes, strategy=strategy)
        if group.wait(_PLACE_SECONDS if strategy == strategies[-1] else _STRICT_SECONDS):
            return Placement(group, cpus)
        remove_placement_group(group)
    raise HarnessError(
        f"the Ray cluster has no room for {nodes} nodes with {cpus:g} CPUs each; wait until others leave it, or lower --workers"
    )


PATIENCE_SECONDS = 3.0
"""Some network file systems show a new file to another machine a little later."""


class Witness(Protocol):
    """A node that can write and read a file where it stands."""

    @property
    def machine(self) -> str: ...

    def witness(self, path: str, token: str, write: bool) -> str:
        """Returns what is wrong, or an empty string."""


def check_shared(nodes: Sequence[Witness], directory: Path) -> None:
    """Raises UsageError where a node doesn't see what the first one writes into `directory`."""
    path, token = str(directory / "witness"), secrets.token_hex(16)
    first, *others = nodes
    if wrong := first.witness(path, token, True):
        raise UsageError(f"node 0 ({first.machine}) can't write to shared storage: {wrong}; {_NEXT}")
    patient = tenacity.Retrying(
        stop=tenacity.stop_after_delay(PATIENCE_SECONDS),
        wait=tenacity.wait_fixed(0.1),
        retry=tenacity.retry_if_result(bool),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else "",
    )
    for number, node in enumerate(others, start=1):
        if wrong := patient(node.witness, path, token, False):
            raise UsageError(
                f"node {number} ({node.machine}) doesn't see what node 0 ({first.machine}) wrote to shared storage: {wrong}; {_NEXT}"
            )


_NEXT = "name a directory that every node sees as `shared` in [storage]"
