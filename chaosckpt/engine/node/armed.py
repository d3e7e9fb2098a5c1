"""Armed faults: which operation of this attempt is held or answered, and for which fault."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from chaosckpt.model.fault import Decision, Fault, Hold, Memory, Trigger
from chaosckpt.model.operation import STEP, Address, Operation


class Strike(msgspec.Struct, frozen=True):
    """A decision and the fault that made it. `trigger` is the index in the fault's `holds`, -1 where it decided by itself."""

    decision: Decision
    fault: int
    trigger: int = -1
    first: bool = False


class ArmedFaults:
    """The faults of one attempt on one node: each trigger strikes once, the other faults decide at every operation."""

    def __init__(
        self, faults: Sequence[Fault], step_rank: int | None = None, hold_at: Collection[Address] = ()
    ) -> None:
        self._step_rank = step_rank
        self._hold_at = frozenset(hold_at)
        self._triggers: dict[Address, list[tuple[int, int, Trigger]]] = {}
        self._deciding: list[tuple[int, Fault, Memory]] = []
        for index, fault in enumerate(faults):
            for number, trigger in enumerate(fault.holds()):
                self._triggers.setdefault(trigger.address, []).append((index, number, trigger))
            if type(fault).decide is not Fault.decide:
                self._deciding.append((index, fault, Memory()))
        self._asked_again = {index for index, _, _ in self._deciding}

    def strike(self, operation: Operation) -> Strike | None:
        """What happens to this operation; None lets it pass.

        Called once for each operation, and again for one that was held for a fault that decides about operations too.
        """
        stepped = operation.address.rank == self._step_rank and operation.address.op != STEP
        if stepped or operation.address in self._hold_at:
            return Strike(Hold(), -1)
        waiting = self._triggers.get(operation.address)
        if waiting:
            fault, number, trigger = waiting.pop(0)
            again = trigger.when == "before" and fault in self._asked_again
            return Strike(Hold(trigger.when, trigger.torn_bytes, again), fault, number)
        for index, deciding, memory in self._deciding:
            first = not memory.took_effect
            decision = deciding.decide(operation, memory)
            if decision is not None:
                return Strike(decision, index, first=first)
        return None

    def activate(self, index: int, on: bool) -> None:
        """From now on the fault of this index is in force here, or no more."""
        for number, _, memory in self._deciding:
            if number == index:
                memory.took_effect = on
