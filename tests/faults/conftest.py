"""A job that notes what a fault does to it, in place of the trial runner: faults are values, their acts are few."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chaosckpt.model.mutation import Mutation
from chaosckpt.model.topology import Topology


class NotedJob:
    """Every act, in order, as one line. `files` is what a dropped tier is said to have held."""

    def __init__(self, topology: Topology, failure_groups: Sequence[Sequence[int]], files: int = 3) -> None:
        self.topology = topology
        self.failure_groups = failure_groups
        self.files = files
        self.acts: list[str] = []

    def await_rest(self) -> None:
        self.acts.append("await rest")

    def kill_job(self) -> None:
        self.acts.append("kill job")

    def kill_rank(self, rank: int) -> None:
        self.acts.append(f"kill rank {rank}")

    def kill_process(self) -> None:
        self.acts.append("kill process")

    def stop_rank(self, rank: int) -> None:
        self.acts.append(f"stop rank {rank}")

    def await_survivors(self) -> None:
        self.acts.append("await survivors")

    def await_peers(self, rank: int) -> None:
        self.acts.append(f"await the peers of rank {rank}")

    def continue_rank(self, rank: int) -> None:
        self.acts.append(f"continue rank {rank}")

    def activate(self, on: bool = True) -> None:
        self.acts.append("activate" if on else "deactivate")

    def terminate(self, ranks: Sequence[int]) -> None:
        self.acts.append(f"terminate {list(ranks)}")

    def lose_node(self, node: int) -> None:
        self.acts.append(f"lose node {node}")

    def resume(self) -> None:
        self.acts.append("resume")

    def run_for(self, seconds: float) -> None:
        self.acts.append(f"run for {seconds}")

    def drop_storage(self, tier: str, node: int | None = None) -> int:
        self.acts.append(f"drop {tier} of {node}")
        return self.files

    def mutate(self, tier: str, node: int | None, mutation: Mutation) -> str | None:
        self.acts.append(f"mutate {tier} of {node}: {type(mutation).__name__}")
        return "what was done" if self.files else None


@pytest.fixture
def job() -> NotedJob:
    return NotedJob(Topology((2, 1)), [[0], [1]])
