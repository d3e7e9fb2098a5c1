"""One operation waits until a peer has passed another: a race between two ranks, decided without a clock.

What it destroys: nothing; it picks one of the orders in which the ranks may do their work anyway.
Survived by: everything must; no guarantee is needed.
How it heals: there is nothing to heal.
Evidence: the one operation was held before it happened while the peer was held after its own; then both went on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Fault, JobControl, Trigger
from chaosckpt.model.phrasing import describe_operation, describe_trigger


class HoldUntil(Fault, frozen=True, tag="hold-until"):
    """Hold one rank before the operation `at` until another rank has performed the operation `until`."""

    weight: ClassVar[float] = 1.0

    at: Trigger
    until: Trigger

    def __post_init__(self) -> None:
        if self.at.when != "before" or self.until.when != "after":
            raise ValueError(f"one is held before, the other after an operation, not {self.at.when}, {self.until.when}")
        if self.at.address.rank == self.until.address.rank:
            raise ValueError(f"rank {self.at.address.rank} can't wait for itself: name operations of two ranks")

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at, self.until)

    def inject(self, job: JobControl) -> None:
        job.resume()

    def moved(self, at: Sequence[Trigger]) -> HoldUntil:
        """With one operation there is no race: it stays what it is."""
        if len(at) < 2:
            return self
        return HoldUntil(Trigger(at[0].address), Trigger(at[1].address, "after"))

    def describe(self) -> str:
        return f"{describe_operation(self.at.address)} held until {describe_trigger(self.until)}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[HoldUntil] | None:
        """Pairs that can be held together, so that neither has to come first."""
        racing = {
            context.golden.points[i].address: partners for i in context.candidates if (partners := context.partners(i))
        }

        def races(point: Point) -> bool:
            return point.address in racing

        if not racing:
            return None
        return context.points(races).flatmap(
            lambda i: st.sampled_from(racing[context.golden.points[i].address]).map(
                lambda j: cls(
                    Trigger(context.golden.points[i].address), Trigger(context.golden.points[j].address, "after")
                )
            )
        )
