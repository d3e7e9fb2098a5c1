"""Where the nodes of an arena stand in a Ray cluster: apart from one another as far as there are machines."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from chaosckpt.campaign.ray.cluster import Cluster, imported_ray
from chaosckpt.errors import HarnessError

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
