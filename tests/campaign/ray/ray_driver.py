"""A driver of its own process for the tests: `session DIRECTORY` runs trials until it is ended, `raylets` runs on two raylets."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from chaosckpt.campaign.ray.arenas import RayArenas
from chaosckpt.campaign.ray.cluster import connect
from tests.campaign.ray.ray_cases import CUT, SCENARIO, SIGKILL, story, trial


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def session(directory: str) -> None:
    """Print the token and the storage of a quiet cluster once a trial is through, and go on with trials for ever."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with connect(None, cpus=2) as cluster, RayArenas(cluster, SCENARIO, 1, Path(directory), spares=0) as arenas:
        arena = arenas.arena(0)
        trial(arena, CUT)
        homes = [node.home for node in arena.actors] + [node.birth.directory for node in arena.actors]
        kept = all(signal.getsignal(number) is handler for number, handler in before.items())
        tell({"session": cluster.session, "homes": homes, "kept": kept})
        while True:
            trial(arena, CUT)


def raylets() -> None:
    """One rank on each of two raylets; one rank is killed, its peer lives on until it fails, and the job goes on."""
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        machines.add_node(num_cpus=1)
        with connect(machines.address, cpus=0) as cluster, RayArenas(cluster, SCENARIO, 1, spares=0) as arenas:
            arena = arenas.arena(0)
            journal = trial(arena, SIGKILL)
            found = {
                "story": story(journal),
                "raylets": len({node.birth.raylet for node in arena.actors}),
                "address": arena.nodes[0].address,
                "own": cluster.own,
            }
        tell(found)
    finally:
        machines.shutdown()


if __name__ == "__main__":
    session(sys.argv[2]) if sys.argv[1] == "session" else raylets()
