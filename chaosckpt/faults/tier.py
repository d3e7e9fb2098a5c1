"""Faults of a whole storage tier: from one operation on, in force on every node at once."""

from __future__ import annotations

from typing import ClassVar, Self

from hypothesis import strategies as st

from chaosckpt.faults.scene import Scene
from chaosckpt.model.census import Point
from chaosckpt.model.fault import PointFault, Trigger
from chaosckpt.model.operation import Operation


class TierFault(PointFault, frozen=True):
    """Base of the faults whose trigger is held while every node learns of them; they strike its tier."""

    strikes_at: ClassVar[frozenset[str]] = frozenset()
    """The names of the operations that it can be triggered by."""

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    @property
    def tier(self) -> str:
        """The storage tier of the trigger."""
        return self.at.address.path.partition(":")[0]

    def concerns(self, operation: Operation) -> bool:
        """Whether an operation is on the fault's tier."""
        return operation.address.path.startswith(self.tier + ":")

    @classmethod
    def strategy(cls, scene: Scene) -> st.SearchStrategy[Self] | None:
        """Before any operation of `strikes_at`."""

        def accepted(point: Point) -> bool:
            return point.address.op in cls.strikes_at

        if not scene.can_strike(accepted):
            return None
        return scene.points(accepted).map(lambda i: cls(Trigger(scene.map.points[i].address)))

    def accepts(self, op: str) -> bool:
        return op in self.strikes_at
