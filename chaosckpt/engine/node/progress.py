"""Progress: which operations get somewhere, who performed the last of them, and how long the pauses between them were.

A rank that polls storage asks the same question over and over (`while not path.exists()`). As long as nothing has changed storage
and the answer is the same, such an operation gets nowhere. Everything that may change storage gets somewhere, and so does what is
asked for the first time since.
"""

from __future__ import annotations

import time

from chaosckpt.model.census import Pauses
from chaosckpt.model.operation import READING, Address, Operation


class Progress:
    """What all rank processes of one attempt on a node have come to. `operations` counts those that got somewhere, `caller` is the
    thread of the last of them."""

    def __init__(self) -> None:
        self.operations = 0
        self.caller = 0
        self.last: Address | None = None
        """The address of the last of them."""
        self._last = time.monotonic()
        self._pauses = Pauses()
        self._asked: set[tuple[object, ...]] = set()
        self._readers: set[tuple[int, int]] = set()

    def note(self, operation: Operation, caller: int, now: float) -> None:
        """An operation of this thread has had its effect, `now` being a time of the monotonic clock."""
        if not self._gets_somewhere(operation):
            return
        pause, self._last = now - self._last, now
        if self.operations:
            self._pauses = Pauses(self._pauses.first, max(self._pauses.between, pause))
        else:
            self._pauses = Pauses(first=pause)
        self.operations += 1
        self.caller = caller
        self.last = operation.address

    def pauses(self) -> Pauses:
        """The pauses so far."""
        return self._pauses

    def _gets_somewhere(self, operation: Operation) -> bool:
        address = operation.address
        reader = (address.rank, operation.handle)
        if address.op == "open_read" and operation.handle:
            self._readers.add(reader)
        if address.op not in READING and not (address.op == "close" and reader in self._readers):
            self._asked.clear()
            return True
        if address.op == "close":
            self._readers.discard(reader)
        question = (address.rank, address.role, address.op, operation.raw, operation.offset, operation.result)
        if question in self._asked:
            return False
        self._asked.add(question)
        return True
