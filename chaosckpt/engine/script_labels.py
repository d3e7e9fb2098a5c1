"""Labels of a command's operations, found afterwards from the whole trace: which save or recovery each belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from chaosckpt.model.census import Label, Point
from chaosckpt.model.checkpoints import Naming
from chaosckpt.model.operation import WRITING, Operation

_REMOVING = ("unlink", "rmdir")


def labelled(trace: Sequence[Operation], naming: Naming) -> list[Label | None]:
    """The label of each operation, None for what belongs to no save and no recovery. `trace` is in the order of effects.

    What is renamed to a checkpoint's name belongs to that checkpoint under its earlier name, too. Removing another step's files
    is retention (`retire`) of the save under way. Reads of checkpoints before the first save of a run are its recovery.
    """
    steps = _steps(trace, naming)
    found: list[Label | None] = []
    saving: int | None = None
    loading = False
    for operation, step in zip(trace, steps, strict=True):
        op = operation.address.op
        if op in WRITING:
            if step is None:
                found.append(None)
                continue
            if _removes(operation, naming) and saving is not None and step != saving:
                found.append(Label("retire", saving))
                continue
            saving = step
            found.append(Label("persist", step))
        elif saving is None:
            loading = loading or (op == "read" and step is not None)
            about = step is not None or op in ("list", "stat", "access", "open_read")
            found.append(Label("load" if loading else "discover", None) if about and _is_out(operation) else None)
        else:
            found.append(None if step is None else Label("persist", saving))
    return found


def points(trace: Sequence[Operation], naming: Naming) -> tuple[Point, ...]:
    """The census points of a command's run: its labelled operations."""
    return tuple(
        Point(operation.address, label, operation.length)
        for operation, label in zip(trace, labelled(trace, naming), strict=True)
        if label is not None
    )


def ends_of_saves(trace: Sequence[Operation], naming: Naming) -> dict[int, int]:
    """The place in the trace of the last operation of each save, retention left out."""
    ends: dict[int, int] = {}
    for place, label in enumerate(labelled(trace, naming)):
        if label is not None and label.step is not None and label.stage != "retire" and _changes(trace[place]):
            ends[label.step] = place
    return dict(sorted(ends.items()))


def _changes(operation: Operation) -> bool:
    return operation.address.op in WRITING


def _is_out(operation: Operation) -> bool:
    return operation.address.path.startswith("out:")


def _removes(operation: Operation, naming: Naming) -> bool:
    op = operation.address.op
    moved_away = (
        op == "rename" and naming.belongs(operation.raw) is not None and naming.belongs(operation.destination) is None
    )
    return op in _REMOVING or moved_away


def _steps(trace: Sequence[Operation], naming: Naming) -> list[int | None]:
    """The step that each operation is about, by its path, or by the name that its file is going to have."""
    becomes: dict[str, int] = {}
    found: list[int | None] = []
    for operation in reversed(trace):
        if operation.address.op in ("rename", "link") and operation.destination is not None:
            step = naming.belongs(operation.destination)
            if step is None:
                step = _inherited(operation.destination, becomes)
            if step is None:
                becomes.pop(operation.raw, None)
                step = naming.belongs(operation.raw)
            else:
                becomes[operation.raw] = step
            found.append(step)
            continue
        step = naming.belongs(operation.raw)
        found.append(step if step is not None else _inherited(operation.raw, becomes))
    found.reverse()
    return found


def _inherited(path: str, becomes: dict[str, int]) -> int | None:
    """The step of this path, or of a directory above it, when it is renamed later on."""
    while path:
        if path in becomes:
            return becomes[path]
        path = path.rpartition("/")[0]
    return None
