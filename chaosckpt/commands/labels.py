"""Labels of a command's operations, found afterwards from the whole trace: which save or recovery each belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chaosckpt.commands.naming import Naming
from chaosckpt.commands.rolling import numbered
from chaosckpt.model.census import Label, Point
from chaosckpt.model.operation import WRITING, Operation

BEGINS = WRITING - {"close", "fsync", "sync"}
"""What can begin a save; a close may also end the reading of a directory that is about to be removed."""
_REMOVING = ("unlink", "rmdir")
_NAMING = ("rename", "link", "symlink")
"""Operations whose destination, or for a symlink whose path, is the name that something has from then on."""


def labelled(trace: Sequence[Operation], naming: Naming, numbers: Sequence[int] = ()) -> list[Label | None]:
    """The label of each operation, None for what belongs to no save and no recovery. `trace` is in the order of effects.

    `numbers` are the steps that this run saves, for a rolling checkpoint, whose paths don't tell.

    Each rank is looked at by itself, so that labels don't depend on which rank was faster. What is renamed to a checkpoint's name
    belongs to that checkpoint under its earlier name, too. A file that is written anew after every save (a pointer to the newest
    checkpoint) is its `commit`. Removing another step's files, or the whole entry of a finished one, is retention (`retire`) of
    the save under way, and so is looking at what that save removes, as a walk through its directory does. What a rank does
    with checkpoints before its first save is its recovery.
    """
    steps = _steps(trace, naming, numbers)
    pointers = _pointers(trace, steps, naming)
    over = _retired_after(trace, steps, naming)
    found: list[Label | None] = []
    saving: dict[int, int] = {}
    loading: set[int] = set()
    reading: set[tuple[int, int]] = set()
    for place, (operation, step, pointer) in enumerate(zip(trace, steps, pointers, strict=True)):
        op, rank = operation.address.op, operation.address.rank
        now = saving.get(rank)
        if op == "open_read":
            reading.add((rank, operation.handle))
        if op == "close" and operation.handle and (rank, operation.handle) in reading:
            reading.discard((rank, operation.handle))
            found.append(None)
        elif op in WRITING:
            if pointer and now is not None:
                found.append(Label("commit", now))
            elif step is None:
                found.append(None)
            elif _removes(operation, naming) and (now != step or place > over.get((rank, step), place)):
                found.append(Label("discover") if now is None else Label("retire", now))
            elif op not in BEGINS and now is None:
                found.append(None)
            else:
                saving[rank] = step if op in BEGINS else saving[rank]
                found.append(Label("persist", step))
        elif now is None:
            if op == "read" and step is not None:
                loading.add(rank)
            about = step is not None or op in ("list", "stat", "access", "open_read")
            found.append(Label("load" if rank in loading else "discover") if about and _is_out(operation) else None)
        else:
            found.append(None if step is None else Label("persist", now))
    return _with_walks(trace, steps, found)


def _with_walks(
    trace: Sequence[Operation], steps: Sequence[int | None], labels: Sequence[Label | None]
) -> list[Label | None]:
    """The labels, with what a rank looks at and removes within one save as retention."""
    told = list(zip((operation.address for operation in trace), steps, labels, strict=True))
    retired = {(at.rank, step, label.step) for at, step, label in told if label is not None and label.stage == "retire"}
    return [
        Label("retire", label.step)
        if label is not None and at.op not in WRITING and step != label.step and (at.rank, step, label.step) in retired
        else label
        for at, step, label in told
    ]


def points(trace: Sequence[Operation], naming: Naming, numbers: Sequence[int] = ()) -> tuple[Point, ...]:
    """The census points of a command's run: its labelled operations."""
    return tuple(
        Point(operation.address, label, operation.length)
        for operation, label in zip(trace, labelled(trace, naming, numbers), strict=True)
        if label is not None
    )


def ends_of_saves(trace: Sequence[Operation], naming: Naming, numbers: Sequence[int] = ()) -> dict[int, int]:
    """The place in the trace of the last operation of each save, its commit included, retention left out."""
    ends: dict[int, int] = {}
    for place, label in enumerate(labelled(trace, naming, numbers)):
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


def _retired_after(
    trace: Sequence[Operation], steps: Sequence[int | None], naming: Naming
) -> dict[tuple[int, int], int]:
    """For each rank and step whose whole entry this rank removes in the end: the place of its last write to that step."""
    written: dict[tuple[int, int], int] = {}
    removed: dict[tuple[int, int], int] = {}
    for place, (operation, step) in enumerate(zip(trace, steps, strict=True)):
        if step is None or operation.address.op not in BEGINS:
            continue
        key = (operation.address.rank, step)
        if not _removes(operation, naming):
            written[key] = place
        elif not naming.rolling and naming.whole(operation.raw) == step:
            removed[key] = place
    return {key: written[key] for key, place in removed.items() if key in written and place > written[key]}


def _steps(trace: Sequence[Operation], naming: Naming, numbers: Sequence[int]) -> list[int | None]:
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
    return numbered(trace, found, naming, numbers) if naming.rolling else found


def _inherited(path: str, becomes: dict[str, int]) -> int | None:
    """The step of this path, or of a directory above it, when it is renamed later on."""
    while path:
        if path in becomes:
            return becomes[path]
        path = path.rpartition("/")[0]
    return None


def _pointers(trace: Sequence[Operation], steps: Sequence[int | None], naming: Naming) -> list[bool]:
    """Whether each operation writes a file that some rank makes anew exactly once after each of its saves."""
    names = _final_names(trace)
    saving: dict[int, int] = {}
    made: Counter[tuple[int, str, int]] = Counter()
    saves: dict[int, set[int]] = {}
    for operation, step, name in zip(trace, steps, names, strict=True):
        rank = operation.address.rank
        if not _changes(operation):
            continue
        if step is not None and operation.address.op in BEGINS and not _removes(operation, naming):
            saving[rank] = step
            saves.setdefault(rank, set()).add(step)
        elif step is None and rank in saving and name.startswith("out:") and _makes(operation, name):
            made[(rank, name, saving[rank])] += 1
    pointers = {
        (rank, name)
        for rank, name, _ in made
        if len(saves[rank]) > 1 and all(made[(rank, name, step)] == 1 for step in saves[rank])
    }
    return [
        _changes(operation) and step is None and (operation.address.rank, name) in pointers
        for operation, step, name in zip(trace, steps, names, strict=True)
    ]


def _makes(operation: Operation, name: str) -> bool:
    """Whether this operation, when it is over, has made the file of this name anew.

    A rename between two file systems fails, and is followed by a copy.
    """
    op = operation.address.op
    if operation.result is not None and operation.result < 0:
        return False
    return (op == "open_write" and operation.raw == name) or (op in _NAMING and _given(operation) == name)


def _given(operation: Operation) -> str:
    """The name that a rename, link or symlink gives."""
    if operation.address.op == "symlink" or operation.destination is None:
        return operation.raw
    return operation.destination


def _final_names(trace: Sequence[Operation]) -> list[str]:
    """The path of each operation, or the name that its file is renamed to later on."""
    becomes: dict[str, str] = {}
    found: list[str] = []
    for operation in reversed(trace):
        if operation.address.op in ("rename", "link") and operation.destination is not None:
            becomes[operation.raw] = becomes.get(operation.destination, operation.destination)
            found.append(becomes[operation.raw])
        else:
            found.append(becomes.get(operation.raw, operation.raw))
    found.reverse()
    return found
