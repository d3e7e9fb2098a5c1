"""Topologies: how many ranks run on which node, and which nodes die together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.errors import UsageError

MOST_RANKS = 1024
"""More processes than this, with their sockets to one another, are a slip of the pen."""


class Topology(msgspec.Struct, frozen=True, order=True):
    """`ranks[n]` is the number of ranks on node n; ranks are numbered node by node from 0. Written `1+1`, `2`, `2+1`."""

    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.ranks or any(count < 1 for count in self.ranks):
            raise ValueError(f"a topology needs at least one node and one rank on each node, not {list(self.ranks)}")

    @property
    def world_size(self) -> int:
        return sum(self.ranks)

    def node_of(self, rank: int) -> int:
        """The node that runs `rank`. Raises ValueError for a rank that the topology hasn't."""
        for node, count in enumerate(self.ranks):
            if rank < count:
                return node
            rank -= count
        raise ValueError(f"topology {self} has no such rank")

    def ranks_on(self, node: int) -> range:
        first = sum(self.ranks[:node])
        return range(first, first + self.ranks[node])

    def __str__(self) -> str:
        return "+".join(map(str, self.ranks))


def check_ranks(key: str, ranks: Sequence[int]) -> None:
    """Refuse numbers of ranks that make no topology, given under this key of a scenario. Raises UsageError."""
    if not ranks or min(ranks) < 1:
        raise UsageError(
            f"{key} has {list(ranks)}: a topology needs at least one node, and at least one rank on every node; "
            "write the number of ranks on each node, such as [1, 1]"
        )
    if sum(ranks) > MOST_RANKS:
        raise UsageError(
            f"{key} has {list(ranks)}: {sum(ranks)} ranks exceed the limit of {MOST_RANKS}; use a few ranks, "
            "each of which is a process"
        )
