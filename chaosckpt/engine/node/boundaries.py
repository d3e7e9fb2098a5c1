"""Stage boundaries: where faults strike when there is no gate, as operations of their own kind."""

from __future__ import annotations

import itertools

from chaosckpt.engine.node.phase import Phase
from chaosckpt.engine.wire.reports import Report
from chaosckpt.model.operation import MARK, Address, Operation


class Boundaries:
    """Makes an operation `mark` of each report of one rank: it is held by leaving the report unanswered.

    Its path is the stage that begins or ends there, as in `stage:persist of save 4`; what a target does to its storage in
    between can't be told apart.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._sequence = itertools.count()
        self._seen: dict[str, int] = {}

    def operation(self, report: Report, phase: Phase) -> Operation:
        """The boundary that this report marks, `phase` having taken note of it."""
        path = f"stage:{type(report).__name__.lower()} in {phase.label}"
        nth = self._seen.get(path, 0)
        self._seen[path] = nth + 1
        address = Address(self._rank, "main", MARK, path, 0, nth)
        return Operation(address=address, sequence=next(self._sequence), raw=path, result=0)
