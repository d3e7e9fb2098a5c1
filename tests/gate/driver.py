"""How tests run a function under a gate: fork it, install the filter in it, serve it to its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaosckpt.gate import Gate, HeldCall, Root, install
from chaosckpt.gate.fence.guard import Guard
from chaosckpt.model.fault import Decision
from chaosckpt.model.operation import Operation

DEADLINE_SECONDS = 60
"""A program that neither ends nor asks for so long is stuck: the test fails instead of hanging."""
_HEADER = struct.Struct("=II?")

Decide = Callable[[Operation], Decision]


@dataclass
class Supervised:
    """One process tree under its gate, and what it did."""

    pid: int
    gate: Gate
    decided: list[Operation] = field(default_factory=list)
    observed: list[Operation] = field(default_factory=list)
    status: int | None = None

    @property
    def ops(self) -> list[str]:
        return [f"{it.address.op} {it.address.path}" for it in self.observed]

    def named(self, *ops: str) -> list[Operation]:
        return [it for it in self.observed if it.address.op in ops]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def launch(
    program: Callable[[], object],
    *,
    roots: list[Root],
    decide: Decide | None = None,
    rank: int = 0,
    keep_data: bool = True,
    wait_killable: bool = True,
    low_descriptors: bool = False,
    limit: int | None = None,
    decode: Callable[[str], str] = lambda path: path,
    after: Callable[[Operation], object] | None = None,
    guard: Guard | None = None,
) -> Supervised:
    """Fork `program` under a gate. `limit` sets its RLIMIT_NOFILE; `after` sees each operation that was performed.

    With a `guard` the gate is asked about connections, too.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        _child(program, theirs, ours, wait_killable, low_descriptors, limit, guard is not None)
    theirs.close()
    with ours:
        message, descriptors, _, _ = socket.recv_fds(ours, 64, 1)
        base, top, killable = _HEADER.unpack(message)
        decided: list[Operation] = []
        observed: list[Operation] = []

        def asked(operation: Operation) -> Decision:
            decided.append(operation)
            return decide(operation) if decide else None

        def seen(operation: Operation) -> None:
            observed.append(operation)
            if after is not None:
                after(operation)

        gate = Gate(
            descriptors[0], base=base, limit=top, rank=rank, roots=roots, decide=asked, observe=seen,
            keep_data=keep_data, decode=decode, wait_killable=killable, low_descriptors=low_descriptors, guard=guard,
        )  # fmt: skip
        ours.send(b"g")
    return Supervised(pid, gate, decided, observed)


def _child(
    program: Callable[[], object],
    theirs: socket.socket,
    ours: socket.socket,
    killable: bool,
    low: bool,
    limit: int | None,
    network: bool,
) -> None:
    """Never returns."""
    code = 1
    try:
        ours.close()
        if limit is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        got = install(wait_killable=killable, low_descriptors=low, network=network)
        socket.send_fds(theirs, [_HEADER.pack(got.base, got.limit, got.wait_killable)], [got.listener])
        os.close(got.listener)
        theirs.recv(1)
        theirs.close()
        program()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(code)


def serve(
    *trees: Supervised,
    when_held: Callable[[Supervised, HeldCall], None] | None = None,
    also: tuple[int, Callable[[], None]] | None = None,
) -> None:
    """One poll loop over several gates until every tree has gone; then frees them and reaps their root processes.

    `when_held` is called for each new hold; by default the whole tree's root process is killed there. `also` is one more
    descriptor, and what to do once when it can be read.
    """
    poll = select.poll()
    by_number = {tree.gate.fileno(): tree for tree in trees}
    told: set[int] = set()
    for number in by_number:
        poll.register(number, select.POLLIN)
    if also is not None:
        poll.register(also[0], select.POLLIN)
    try:
        while by_number:
            events = poll.poll(DEADLINE_SECONDS * 1000)
            if not events:
                raise AssertionError(f"no call for {DEADLINE_SECONDS} s; last: {[tree.ops[-3:] for tree in trees]}")
            for number, _ in events:
                if also is not None and number == also[0]:
                    poll.unregister(number)
                    also[1]()
                    continue
                tree = by_number[number]
                if not tree.gate.serve():
                    poll.unregister(number)
                    del by_number[number]
                for held in [held for held in tree.gate.holds if id(held) not in told]:
                    told.add(id(held))
                    (when_held or (lambda tree, held: tree.kill()))(tree, held)
                if _ended(tree) and number in by_number and not tree.gate.serve():
                    poll.unregister(number)
                    del by_number[number]
    finally:
        for tree in trees:
            tree.gate.close()
            if tree.status is None:
                with contextlib.suppress(ProcessLookupError):
                    tree.kill()
                tree.status = os.waitpid(tree.pid, 0)[1]


def _ended(tree: Supervised) -> bool:
    """Reap the root process, so that the kernel drops the filter with it."""
    if tree.status is None:
        pid, status = os.waitpid(tree.pid, os.WNOHANG)
        if pid:
            tree.status = status
    return tree.status is not None


def run(
    program: Callable[[], object], *, when_held: Callable[[Supervised, HeldCall], None] | None = None, **options: object
) -> Supervised:
    """Launch and serve one tree; its observed operations, exit status and untraced sentences are in the result."""
    tree = launch(program, **options)  # type: ignore[arg-type]
    serve(tree, when_held=when_held)
    return tree


def fails(number: int, call: Callable[..., object], *arguments: object) -> None:
    """Check, inside a program, that a call fails with this error number."""
    try:
        call(*arguments)
    except OSError as error:
        if error.errno != number:
            raise
    else:
        raise AssertionError(f"no error {number}")


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Every name under `root`: kind, mode, content or link target, and which names share an inode."""
    found: dict[str, tuple[object, ...]] = {}
    first_name: dict[int, str] = {}
    for path in _walk(root):
        name = os.path.relpath(os.fsencode(path), os.fsencode(root)).decode("utf-8", "backslashreplace")
        status = os.lstat(path)
        if os.path.islink(path):
            found[name] = ("link", os.readlink(path))
        elif os.path.isdir(path):
            found[name] = ("directory", oct(status.st_mode))
        else:
            twin = first_name.setdefault(status.st_ino, name)
            with open(path, "rb") as file:
                found[name] = ("file", oct(status.st_mode), twin, file.read())
    return found


def _walk(top: Path) -> Iterator[str]:
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        yield path
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _walk(Path(path))
