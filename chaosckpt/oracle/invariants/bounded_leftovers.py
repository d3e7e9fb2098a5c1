"""bounded-leftovers: what crashes leave on storage for good stays within the bound that the target declares."""

from __future__ import annotations

from chaosckpt.model.journal import StorageLeft, StorageMutated
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.saves import saves
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged

NAME = "bounded-leftovers"
NAMED = 3
"""Files that the sentence names."""


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    left = view.first(StorageLeft)
    if left is None:
        return NotJudged("the journal doesn't tell what was left on storage")
    if view.closing is None or not view.closing.finished:
        return NotJudged("the closing attempt didn't come to its end, so that nothing could be tidied up in it")
    if not any(save.attempt == view.closing.number and save.started_by_all for save in saves(view)):
        return NotJudged("the closing attempt saved nothing, so that nothing could be tidied up in it")
    touched = {at.event.path for at in view.all(StorageMutated)}
    files = sorted(
        (item for item in left.event.abandoned if not _within(item[0], touched)), key=lambda item: (-item[1], item[0])
    )
    spare, bound = sum(size for _, size in files), left.event.bound_bytes
    if spare <= bound:
        return []
    largest = ", ".join(f"{path} ({size} bytes)" for path, size in files[:NAMED])
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return [
        view.violation(
            NAME,
            f"When the trial was over, {spare} bytes lay in {len(files)} files that no run without faults leaves, "
            f"more than the {bound} that the target declares: {largest}{more}.",
            attempt=view.closing.number,
            error_type="abandoned-files",
            evidence=(left.index,),
            expected=f"{bound} bytes or fewer",
            seen=f"{spare} bytes in {len(files)} abandoned files",
        )
    ]


def _within(path: str, touched: set[str]) -> bool:
    """True for a path that a fault planted or changed, or that lies in such a directory."""
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in touched if other)


bounded_leftovers = Invariant(
    name=NAME,
    holds="the bytes that crashes leave for good stay within the bound that the target declares",
    of_target=_of_target,
)
