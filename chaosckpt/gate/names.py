"""Calls that change names: directories made and removed; files linked, renamed, removed, resized, given modes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator

from chaosckpt.gate import kernel
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Reply, Steps, Wait
from chaosckpt.gate.paths import ResolvedPath
from chaosckpt.gate.tree import Handler, Tree
from chaosckpt.model.file_names import printable, text_of

Family = Generator[Wait, None, Reply]


def _mkdir(tree: Tree, call: Call, directory: int | None = None, path: int = 0) -> Family:
    place = tree.entry(call, directory, path)
    if place.raw is None:
        return tree.made_outside(place.path, "mkdir")
    mode = call.word(path + 1) & 0o7777 & ~call.process.umask()

    def action() -> None:
        before = os.umask(0)
        try:
            os.mkdir(place.reach, mode)
        finally:
            os.umask(before)

    return (yield from tree.by_path(call, "mkdir", place, action, mode=mode))


def _remove(op: str, act: Callable[[bytes], None]) -> Callable[..., Family]:
    def family(tree: Tree, call: Call, directory: int | None = None, path: int = 0) -> Family:
        place = tree.entry(call, directory, path)
        if place.raw is None:
            reply = tree.outside(place.path, op)
            if reply is CONTINUE and tree.guard is not None:
                tree.guard.made.discard(place.path)
            return reply
        if _holds_no_data(place):
            return CONTINUE
        return (yield from tree.by_path(call, op, place, lambda: act(place.reach)))

    return family


def _holds_no_data(place: ResolvedPath) -> bool:
    """Whether it is a pipe, socket or device, the making of which is no operation on storage either."""
    try:
        kind = os.lstat(place.reach).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind))


_unlink = _remove("unlink", os.unlink)
_rmdir = _remove("rmdir", os.rmdir)


def _unlinkat(tree: Tree, call: Call) -> Steps:
    remove = _rmdir if call.word(2) & k.AT_REMOVEDIR else _unlink
    return (yield from remove(tree, call, 0, 1))


def _symlink(tree: Tree, call: Call, directory: int | None = None, path: int = 1) -> Family:
    place = tree.entry(call, directory, path)
    if place.raw is None:
        return tree.made_outside(place.path, "symlink")
    if _is_root(place):
        return _leads_elsewhere(tree, place)
    target = tree.text(call, 0)
    action = lambda: os.symlink(target, place.reach)  # noqa: E731
    return (yield from tree.by_path(call, "symlink", place, action, destination=text_of(target)))


def _is_root(place: ResolvedPath) -> bool:
    return place.raw is not None and place.raw.endswith(":.")


def _leads_elsewhere(tree: Tree, root: ResolvedPath) -> Reply:
    """A root that is a link would make wherever it leads the job's own, and the harness's, which empties it."""
    tree.refused(f"a link in the place of {printable(text_of(root.path))}")
    return -errno.EACCES


def _rename(
    tree: Tree, call: Call, first: int | None = None, source: int = 0, second: int | None = None, to: int = 1
) -> Family:
    flags = call.word(4) if first is not None and call.number == k.NUMBERS["renameat2"] else 0
    old = tree.entry(call, first, source)
    new = tree.entry(call, second, to)
    if old.raw is None and (refused := tree.outside(old.path, "rename")) is not CONTINUE:
        return refused
    if new.raw is None:
        change = tree.outside if os.path.lexists(new.path) else tree.made_outside
        if (refused := change(new.path, "rename")) is not CONTINUE:
            return refused
        if old.raw is None:
            if tree.guard is not None and not flags & k.RENAME_EXCHANGE:
                tree.guard.made.discard(old.path)
            return CONTINUE
    for place, onto in ((old, new), (new, old)) if flags & k.RENAME_EXCHANGE else ((old, new),):
        if _is_root(onto) and os.path.islink(place.path):
            return _leads_elsewhere(tree, onto)
    content, mode = _incoming(tree, old) if old.raw is None else (None, 0)
    exchanged = bool(flags & k.RENAME_EXCHANGE)
    raw, destination = old.raw or text_of(old.path), new.raw or text_of(new.path)

    def action() -> int:
        same = _same_file(old.reach, new.reach)
        kernel.renameat2(old.reach, new.reach, flags)
        if same and not exchanged:
            return 0  # Two names of one file: the kernel leaves both as they are.
        tree.moved(raw, destination, exchanged=exchanged)
        tree.descriptors.moved(old.path, new.path, tree.resolver.outside, exchanged=exchanged)
        return 0

    operation = tree.operation(call, "rename", raw, destination=destination, flags=flags, mode=mode, data=content)
    return (yield from tree.perform(operation, action))


def _renameat(tree: Tree, call: Call) -> Steps:
    return (yield from _rename(tree, call, 0, 1, 2, 3))


def _link(tree: Tree, call: Call) -> Steps:
    return (yield from _linked(tree, call, tree.place(call, None, 0, follow=False), tree.entry(call, None, 1)))


def _linkat(tree: Tree, call: Call) -> Steps:
    flags = call.word(4)
    new = tree.entry(call, 2, 3)
    if flags & k.AT_EMPTY_PATH and not tree.text(call, 1):
        held = tree.held(call, 0)
        if held is None:
            refused = tree.outside_descriptor(call, 0, "link")
            if refused is CONTINUE and new.raw is None:
                refused = tree.made_outside(new.path, "link")
            return refused
        old = tree.resolver.of(held)
    else:
        old = tree.place(call, 0, 1, follow=bool(flags & k.AT_SYMLINK_FOLLOW))
    return (yield from _linked(tree, call, old, new))


def _linked(tree: Tree, call: Call, old: ResolvedPath, new: ResolvedPath) -> Family:
    # A second name counts as a change: what is then done by that name is done to the file.
    if old.raw is None and os.path.lexists(old.path) and (refused := tree.outside(old.path, "link")) is not CONTINUE:
        return refused
    if new.raw is None and (refused := tree.made_outside(new.path, "link")) is not CONTINUE:
        return refused
    if old.raw is None and new.raw is None:
        return CONTINUE
    content, mode = _incoming(tree, old) if old.raw is None else (None, 0)
    raw, destination = old.raw or text_of(old.path), new.raw or text_of(new.path)
    held = old.description

    def action() -> int:
        if held is None:
            os.link(old.reach, new.reach, follow_symlinks=False)
            return 0
        kernel.link_description(held.descriptor, new.reach)
        if not os.path.lexists(held.path) or stat.S_ISDIR(os.lstat(held.path).st_mode):
            held.path, held.raw = new.path, destination  # An unnamed file has its first name now.
        return 0

    operation = tree.operation(call, "link", raw, held=held, destination=destination, mode=mode, data=content)
    return (yield from tree.perform(operation, action))


def _truncate(tree: Tree, call: Call) -> Steps:
    place = tree.place(call, None, 0, follow=True)
    if place.raw is None:
        return tree.outside(place.path, "truncate")
    length = call.signed(1)
    return (yield from tree.by_path(call, "truncate", place, lambda: os.truncate(place.reach, length), length=length))


def _chmod(tree: Tree, call: Call, directory: int | None = None, path: int = 0, flags: int = 0) -> Family:
    place = tree.place(call, directory, path, follow=not flags & k.AT_SYMLINK_NOFOLLOW)
    if place.raw is None:
        return tree.outside(place.path, "chmod")
    mode = call.word(path + 1) & 0o7777
    act = lambda: kernel.fchmodat2(place.reach, mode, flags) if flags else os.chmod(place.reach, mode)  # noqa: E731
    return (yield from tree.by_path(call, "chmod", place, act, mode=mode, flags=flags))


def _fchmodat2(tree: Tree, call: Call) -> Steps:
    flags = call.word(3)
    if flags & k.AT_EMPTY_PATH and not tree.text(call, 1):
        held = tree.held(call, 0)
        if held is None:
            return tree.outside_descriptor(call, 0, "chmod")
        mode = call.word(2) & 0o7777
        return (
            yield from tree.by_path(
                call, "chmod", tree.resolver.of(held), lambda: os.fchmod(held.descriptor, mode), mode=mode
            )
        )
    return (yield from _chmod(tree, call, 0, 1, flags & ~k.AT_EMPTY_PATH))


def _incoming(tree: Tree, old: ResolvedPath) -> tuple[bytes | None, int]:
    """Content and mode of what is about to be moved in from outside the roots, where nobody saw it being written."""
    try:
        found = os.stat(old.reach, follow_symlinks=old.description is not None)
        if not stat.S_ISREG(found.st_mode):
            if not stat.S_ISLNK(found.st_mode):
                name = printable(text_of(old.path))
                tree.note(f"{name} was moved in from outside the tracked roots, with content that is not in the trace")
                return None, found.st_mode
            return os.readlink(old.reach), found.st_mode
        if not tree.keep_data:
            return None, found.st_mode
        with open(old.reach, "rb") as file:
            return file.read(), found.st_mode
    except OSError:
        return None, 0


def _same_file(one: bytes, other: bytes) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


HANDLERS: dict[str, Handler] = {
    "mkdir": _mkdir,
    "mkdirat": lambda tree, call: _mkdir(tree, call, 0, 1),
    "unlink": _unlink,
    "rmdir": _rmdir,
    "unlinkat": _unlinkat,
    "symlink": _symlink,
    "symlinkat": lambda tree, call: _symlink(tree, call, 1, 2),
    "rename": _rename,
    "renameat": _renameat,
    "renameat2": _renameat,
    "link": _link,
    "linkat": _linkat,
    "truncate": _truncate,
    "chmod": _chmod,
    "fchmodat": lambda tree, call: _chmod(tree, call, 0, 1),
    "fchmodat2": _fchmodat2,
}
