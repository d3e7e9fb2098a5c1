"""bounded-leftovers: what crashes leave on storage for good stays within the bound that the target declares."""

from __future__ import annotations

from chaosckpt.model.journal import StorageLeft, StorageMutated
from chaosckpt.model.phrasing import describe_path, plural
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
        return NotJudged("the journal has no list of what was left on storage")
    if view.closing is None or not view.closing.finished:
        return NotJudged("the closing attempt did not finish, so it could not remove leftovers")
    if not any(save.attempt == view.closing.number and save.started_by_all for save in saves(view)):
        return NotJudged("the closing attempt saved nothing, so it could not remove leftovers")
    touched = {at.event.path for at in view.all(StorageMutated)}
    files = sorted(
        (item for item in left.event.abandoned if not _within(item[0], touched)), key=lambda item: (-item[1], item[0])
    )
    spare, bound = sum(size for _, size in files), left.event.bound_bytes
    if spare <= bound:
        return []
    largest = ", ".join(f"{describe_path(path)} ({plural(size, 'byte')})" for path, size in files[:NAMED])
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return [
        view.violation(
            NAME,
            f"After the trial, {plural(len(files), 'file')} with {plural(spare, 'byte')} remained that no fault-free run leaves; "
            f"the target declares at most {plural(bound, 'byte')}: {largest}{more}.",
            attempt=view.closing.number,
            error_type="abandoned-files",
            evidence=(left.index,),
            expected=f"at most {plural(bound, 'byte')}",
            seen=f"{plural(spare, 'byte')} in {plural(len(files), 'abandoned file')}",
        )
    ]


def _within(path: str, touched: set[str]) -> bool:
    """True for a path that a fault planted or changed, or that lies in such a directory."""
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in touched if other)


bounded_leftovers = Invariant(
    name=NAME,
    holds="crashes leave no more bytes behind than the target declares",
    of_target=_of_target,
)
