"""The gate of one rank's process tree: receives its notified calls, has them handled, and holds or answers them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
from collections.abc import Callable, Generator, Sequence

from chaosckpt.gate import copies, lifetimes, names, opens, reads, writes
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.answers import GONE, Answers
from chaosckpt.gate.call import Call, Pause, Steps
from chaosckpt.gate.fence import attributes, peers, signals
from chaosckpt.gate.fence.guard import Guard
from chaosckpt.gate.paths import Root
from chaosckpt.gate.processes import Execution, Process
from chaosckpt.gate.tree import Handler, Tree
from chaosckpt.model.fault import Decision
from chaosckpt.model.operation import Operation

__all__ = ["Gate", "HeldCall", "Root"]

_FAMILIES = tuple(
    family.HANDLERS for family in (opens, writes, copies, names, attributes, reads, lifetimes, signals, peers)
)
_HANDLERS: dict[int, Handler] = {
    k.NUMBERS[name]: handler for family in _FAMILIES for name, handler in family.items() if name in k.NUMBERS
}
_NOTHING = bytes(k.NOTIFICATION.size)


class _Started:
    """A call whose handler has begun and may have to wait."""

    __slots__ = ("call", "steps", "waits_for")

    def __init__(self, call: Call, steps: Steps) -> None:
        self.call = call
        self.steps = steps
        self.waits_for: int | None = None


class HeldCall:
    """A call left unanswered by a Hold: `operation` as it was decided, `when` as far as it was performed."""

    def __init__(self, started: _Started, pause: Pause) -> None:
        self.started = started
        self.operation = pause.operation
        self.when = pause.when

    @property
    def tid(self) -> int:
        return self.started.call.tid

    @property
    def pid(self) -> int:
        return self.started.call.process.pid


class Gate:
    """One per rank process tree; lives in another process, an ancestor of the tree, whose event loop calls `serve`.

    `decide` is called once per operation before it is performed, `observe` with its result afterwards, in the order of
    effects. A write may be observed in parts. `holds` are the calls left unanswered, oldest first; `untraced` says in
    sentences what could not be traced.
    """

    def __init__(
        self,
        listener: int,
        *,
        base: int,
        limit: int,
        rank: int,
        roots: Sequence[Root],
        decide: Callable[[Operation], Decision],
        observe: Callable[[Operation], None],
        keep_data: bool = False,
        decode: Callable[[str], str] = lambda path: path,
        wait_killable: bool = True,
        low_descriptors: bool = False,
        hidden: Callable[[Operation, Sequence[str]], None] = lambda operation, names: None,
        guard: Guard | None = None,
        many_ranks: bool = False,
    ) -> None:
        """`listener`, `base`, `limit` and `wait_killable` are what `install` returned; the gate owns the listener.

        `hidden` is told which entries a Hide has really left out of a listing.
        """
        self.holds: list[HeldCall] = []
        self._waiting: list[_Started] = []
        self._listener = listener
        self._wait_killable = wait_killable
        self._notification = bytearray(_NOTHING)
        self._pidfds: dict[int, Process] = {}
        self._epoll = select.epoll()
        self._epoll.register(listener, select.EPOLLIN)
        self._tree = Tree(
            base=base, limit=limit, rank=rank, roots=roots, decide=decide, observe=observe, keep_data=keep_data,
            decode=decode, low_descriptors=low_descriptors, born=self._born, hidden=hidden, guard=guard,
            many_ranks=many_ranks,
        )  # fmt: skip
        self._answers = Answers(listener, self._tree, wait_killable=wait_killable)
        self.untraced = self._tree.untraced
        _allow_many_descriptors()
        with contextlib.suppress(OSError):  # Kernels before 6.6 are slower without it, otherwise the same.
            fcntl.ioctl(listener, k.NOTIFY_SET_FLAGS, k.SYNCHRONOUS_WAKE_UP)

    def fileno(self) -> int:
        """Readable when `serve` has something to do."""
        return self._epoll.fileno()

    def serve(self) -> bool:
        """Handle what is pending, one notification at most; False when the whole tree is gone."""
        if self._epoll.closed:
            return False
        ready = dict(self._epoll.poll(0))
        listening = ready.pop(self._listener, 0)
        for descriptor in ready:
            if descriptor in self._pidfds:
                self._died(descriptor)
            else:
                self._readable(descriptor)
        if listening & select.EPOLLHUP:
            return False
        if listening:
            self._receive()
        return True

    def resume(self, held: HeldCall) -> None:
        """Perform what is left of a held call and answer it; nothing, when its thread has died."""
        if held not in self.holds:
            return
        self.holds.remove(held)
        if self._answers.alive(held.started.call):
            self._advance(held.started)
        else:
            held.started.steps.close()

    def held_threads(self) -> set[int]:
        """Threads that go no further: those of held calls, and those that wait for a pipe as they would without us."""
        return {held.tid for held in self.holds} | {started.call.tid for started in self._waiting}

    @property
    def caller(self) -> int:
        """The thread of the last operation."""
        return self._tree.caller

    def ranks(self) -> dict[int, int]:
        """The process of each rank alive in this tree, where ranks are told apart by their environment."""
        return self._tree.processes.heads()

    @property
    def executions(self) -> list[Execution]:
        """How each process was started that headed a rank, in order, where ranks are told apart by their environment."""
        return self._tree.processes.executions

    def close(self) -> None:
        """Free every descriptor. Calls still held fail with ENOSYS if their threads live."""
        if self._epoll.closed:
            return
        for started in [held.started for held in self.holds] + self._waiting:
            started.steps.close()
        self.holds.clear()
        self._waiting.clear()
        self._answers.close()
        self._tree.descriptors.close()
        self._tree.processes.close()
        self._pidfds.clear()
        self._epoll.close()
        os.close(self._listener)

    def _receive(self) -> None:
        self._notification[:] = _NOTHING  # The kernel refuses a buffer with anything in it.
        try:
            fcntl.ioctl(self._listener, k.NOTIFY_RECEIVE, self._notification, True)
        except OSError as error:
            if error.errno in GONE:
                return
            raise
        identity, tid, _, number, _, instruction, *arguments = k.NOTIFICATION.unpack(self._notification)
        try:
            process = self._tree.processes.of(tid)
        except OSError:
            return  # It died meanwhile.
        if process.exiting:
            return  # Its exit is under way: its remaining threads do nothing more.
        call = Call(identity, tid, process, number, instruction, tuple(arguments))
        if not self._wait_killable and self._restarted(call):
            return
        if process.executing:
            self._advance(_Started(call, self._after_exec(call)))
            return
        try:
            outcome = _HANDLERS[number](self._tree, call)
        except OSError as error:
            outcome = -(error.errno or errno.EIO)
        if isinstance(outcome, Generator):
            self._advance(_Started(call, outcome))
        else:
            self._answers.give(call, outcome)

    def _after_exec(self, call: Call) -> Steps:
        yield from lifetimes.swept(self._tree, call)
        outcome = _HANDLERS[call.number](self._tree, call)
        return (yield from outcome) if isinstance(outcome, Generator) else outcome

    def _advance(self, started: _Started) -> None:
        """Go on with a call until it waits or is answered."""
        try:
            wait = next(started.steps)
        except StopIteration as end:
            self._answers.give(started.call, end.value)
        except OSError as error:
            self._answers.give(started.call, -(error.errno or errno.EIO))
        else:
            if isinstance(wait, Pause):
                self.holds.append(HeldCall(started, wait))
                if wait.discard is not None:
                    self._answers.discard(started.call, wait.discard)
            else:
                started.waits_for = wait.descriptor
                self._waiting.append(started)
                self._epoll.register(wait.descriptor, select.EPOLLIN)

    def _restarted(self, call: Call) -> bool:
        """Is this a call made again after a signal, that was performed already or is held?"""
        if self._answers.repeat(call):
            return True
        for started in [held.started for held in self.holds] + self._waiting:
            if started.call.tid == call.tid and started.call.key == call.key:
                started.call = call
                if started.waits_for is not None:
                    self._epoll.modify(started.waits_for, select.EPOLLIN)
                return True
        return False

    def _readable(self, descriptor: int) -> None:
        for started in [started for started in self._waiting if started.waits_for == descriptor]:
            if self._answers.valid(started.call):
                self._epoll.unregister(descriptor)
                self._waiting.remove(started)
                started.waits_for = None
                self._advance(started)
            else:
                self._epoll.modify(descriptor, 0)  # Interrupted: it goes on when the call is made again, if ever.

    def _born(self, process: Process) -> None:
        self._pidfds[process.pidfd] = process
        self._epoll.register(process.pidfd, select.EPOLLIN)

    def _died(self, pidfd: int) -> None:
        """A process ended: files that it alone held are let go, and their locks. A kill is nobody's operation."""
        process = self._pidfds.pop(pidfd)
        self._epoll.unregister(pidfd)
        for held in [held for held in self.holds if held.started.call.process is process]:
            self.holds.remove(held)
            held.started.steps.close()
        for started in [started for started in self._waiting if started.call.process is process]:
            self._waiting.remove(started)
            if started.waits_for is not None:
                self._epoll.unregister(started.waits_for)
            started.steps.close()
        self._tree.died(process)


def _allow_many_descriptors() -> None:
    """The supervisor holds a copy of every open file of its trees."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
