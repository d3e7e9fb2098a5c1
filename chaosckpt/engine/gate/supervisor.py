"""The gate of one rank's process tree: receives its notified calls, has them handled, and answers."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
from collections.abc import Callable, Generator, Sequence

from chaosckpt.engine.gate import copies, lifetimes, names, opens, reads, writes
from chaosckpt.engine.gate import syscalls as k
from chaosckpt.engine.gate.call import Call, Continue, Discard, Handler, Inject, Pause, Reply, Steps
from chaosckpt.engine.gate.paths import Root
from chaosckpt.engine.gate.processes import Process
from chaosckpt.engine.gate.tree import Tree
from chaosckpt.model.decision import Decision
from chaosckpt.model.operation import Operation, When

_FAMILIES = (opens, writes, copies, names, reads, lifetimes)
_HANDLERS: dict[int, Handler] = {
    k.NUMBERS[name]: handler
    for family in _FAMILIES
    for name, handler in family.HANDLERS.items()
    if name in k.NUMBERS
}
_NOTHING = bytes(k.NOTIFICATION.size)
_GONE = (errno.ENOENT, errno.EINTR, errno.ESRCH)


class Held:
    """A call left unanswered, because its operation was decided to be held or (without `operation`) waits for a pipe."""

    def __init__(self, call: Call, steps: Steps) -> None:
        self.call = call
        self.steps = steps
        self.operation: Operation | None = None
        self.when: When = "before"
        self.waits_for: int | None = None

    @property
    def tid(self) -> int:
        return self.call.tid

    @property
    def pid(self) -> int:
        return self.call.process.pid


class Gate:
    """One per rank process tree; lives in another process, an ancestor of the tree, and needs its event loop's turns.

    `decide` is called once per operation before it is performed, `observe` with its result afterwards, in the order of effects.
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
    ) -> None:
        """`listener`, `base`, `limit` and `wait_killable` are what `install` returned; the gate owns the listener from now on."""
        self.holds: list[Held] = []
        self._waiting: list[Held] = []
        self._listener = listener
        self._wait_killable = wait_killable
        self._notification = bytearray(_NOTHING)
        self._interrupted: dict[int, list[tuple[tuple[object, ...], Reply]]] = {}
        self._pidfds: dict[int, Process] = {}
        self._epoll = select.epoll()
        self._epoll.register(listener, select.EPOLLIN)
        self._tree = Tree(
            base=base, limit=limit, rank=rank, roots=roots, decide=decide, observe=observe, keep_data=keep_data,
            decode=decode, low_descriptors=low_descriptors, born=self._born,
        )  # fmt: skip
        self.untraced = self._tree.untraced
        _allow_many_descriptors()
        try:
            fcntl.ioctl(listener, k.NOTIFY_SET_FLAGS, k.SYNCHRONOUS_WAKE_UP)
        except OSError:
            pass  # Kernels before 6.6: slower, otherwise the same.

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

    def resume(self, held: Held) -> None:
        """Perform what is left of a held call and answer it; nothing, when its thread has died."""
        if held not in self.holds:
            return
        self.holds.remove(held)
        if self._alive(held.call):
            self._advance(held)
        else:
            held.steps.close()

    def held_threads(self) -> set[int]:
        return {held.tid for held in self.holds}

    def close(self) -> None:
        """Free every descriptor. Calls still held fail with ENOSYS if their threads live."""
        if self._epoll.closed:
            return
        for held in self.holds + self._waiting:
            held.steps.close()
        self.holds.clear()
        self._waiting.clear()
        self._interrupted.clear()
        self._tree.descriptors.close()
        self._tree.processes.close()
        self._pidfds.clear()
        self._epoll.close()
        os.close(self._listener)

    # One notification

    def _receive(self) -> None:
        self._notification[:] = _NOTHING  # The kernel refuses a buffer with anything in it.
        try:
            fcntl.ioctl(self._listener, k.NOTIFY_RECEIVE, self._notification, True)
        except OSError as error:
            if error.errno in _GONE:
                return  # The caller died, or a signal took its call back.
            raise
        identity, tid, _, number, _, instruction, *arguments = k.NOTIFICATION.unpack(self._notification)
        try:
            process = self._tree.processes.of(tid)
        except OSError:
            return  # It died meanwhile.
        if process.exiting:
            return  # Its exit is under way, and its remaining threads do nothing more.
        call = Call(identity, tid, process, number, instruction, tuple(arguments))
        if not self._wait_killable and self._restarted(call):
            return
        if process.executing and self._tree.descriptors.open:
            self._advance(Held(call, self._after_exec(call)))
            return
        try:
            outcome = _HANDLERS[number](self._tree, call)
        except OSError as error:
            outcome = -(error.errno or errno.EIO)
        if isinstance(outcome, Generator):
            self._advance(Held(call, outcome))
        else:
            self._answer(call, outcome)

    def _after_exec(self, call: Call) -> Steps:
        yield from lifetimes.swept(self._tree, call)
        outcome = _HANDLERS[call.number](self._tree, call)
        return (yield from outcome) if isinstance(outcome, Generator) else outcome

    def _advance(self, held: Held) -> None:
        """Go on with a call until it waits or is answered."""
        try:
            wait = next(held.steps)
        except StopIteration as end:
            self._answer(held.call, end.value)
        except OSError as error:
            self._answer(held.call, -(error.errno or errno.EIO))
        else:
            if isinstance(wait, Pause):
                held.operation, held.when = wait
                self.holds.append(held)
                if held.when == "after" and held.operation.address.op == "close" and held.call.number == k.NUMBERS["close"]:
                    self._discard(held.call, held.call.descriptor(0))
            else:
                held.waits_for = wait.descriptor
                self._waiting.append(held)
                self._epoll.register(wait.descriptor, select.EPOLLIN)

    # Answers

    def _answer(self, call: Call, reply: Reply) -> None:
        if isinstance(reply, Discard):
            self._discard(call, reply.number)
            reply = -reply.error
        if isinstance(reply, Inject):
            answered = self._inject(call, reply)
        else:
            if isinstance(reply, Continue):
                answer = k.ANSWER.pack(call.identity, 0, 0, k.ANSWER_CONTINUE)
            else:
                answer = k.ANSWER.pack(call.identity, max(reply, 0), min(reply, 0), 0)
            answered = self._send(k.NOTIFY_SEND, answer)
        if not answered and not self._wait_killable and _lives(call):
            key = (call.number, call.instruction, call.arguments)
            self._interrupted.setdefault(call.tid, []).append((key, reply))
        elif isinstance(reply, Inject) and reply.lent:
            os.close(reply.descriptor)

    def _inject(self, call: Call, reply: Inject) -> bool:
        flags = k.ADD_AT_NUMBER | k.ADD_AND_ANSWER
        cloexec = os.O_CLOEXEC if reply.cloexec else 0
        request = k.ADDED_DESCRIPTOR.pack(call.identity, flags, reply.descriptor, reply.number, cloexec)
        try:
            return self._send(k.NOTIFY_ADD_DESCRIPTOR, request)
        except OSError as error:
            if error.errno == errno.EBADF and self._raise_limit(call.process.pid):
                return self._send(k.NOTIFY_ADD_DESCRIPTOR, request)
            self._tree.descriptors.leave(call.process, reply.number)
            return self._send(k.NOTIFY_SEND, k.ANSWER.pack(call.identity, 0, -errno.EMFILE, 0))

    def _raise_limit(self, pid: int) -> bool:
        """A program that lowers its limit of descriptors below the band still gets its files."""
        needed = self._tree.descriptors.limit
        try:
            soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(soft, needed), hard))
        except (OSError, ValueError):
            self._tree.note("a process lowered its hard limit of open files below the gate's numbers")
            return False
        return True

    def _discard(self, call: Call, number: int) -> None:
        """Take a file away from the caller, by putting another one at its number."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            request = k.ADDED_DESCRIPTOR.pack(call.identity, k.ADD_AT_NUMBER, nothing, number, os.O_CLOEXEC)
            self._send(k.NOTIFY_ADD_DESCRIPTOR, request)
        except OSError:
            pass  # Its limit forbids the number; the caller then keeps a file that we have closed.
        finally:
            os.close(nothing)

    def _send(self, request: int, argument: bytes) -> bool:
        """False when nobody waits for the answer any more."""
        try:
            fcntl.ioctl(self._listener, request, argument)
        except OSError as error:
            if error.errno in _GONE:
                return False
            raise
        return True

    # Calls interrupted by signals, where the kernel can't defer those (before 5.19)

    def _restarted(self, call: Call) -> bool:
        """Is this the restart of a call that was performed or is held? Then it gets that one's answer."""
        key = (call.number, call.instruction, call.arguments)
        results = self._interrupted.get(call.tid, [])
        for index, (interrupted, reply) in enumerate(results):
            if interrupted == key:
                del results[index]
                self._answer(call, reply)
                return True
        for held in self.holds + self._waiting:
            earlier = held.call
            if earlier.tid == call.tid and (earlier.number, earlier.instruction, earlier.arguments) == key:
                held.call = call
                if held.waits_for is not None:
                    self._epoll.modify(held.waits_for, select.EPOLLIN)
                return True
        return False

    def _alive(self, call: Call) -> bool:
        return self._valid(call) or (not self._wait_killable and _lives(call))

    def _valid(self, call: Call) -> bool:
        return self._send(k.NOTIFY_ID_VALID, call.identity.to_bytes(8, "little"))

    # Other events

    def _readable(self, descriptor: int) -> None:
        for held in [held for held in self._waiting if held.waits_for == descriptor]:
            if self._valid(held.call):
                self._epoll.unregister(descriptor)
                self._waiting.remove(held)
                held.waits_for = None
                self._advance(held)
            else:
                self._epoll.modify(descriptor, 0)  # Interrupted: it goes on when the call is restarted, if ever.

    def _born(self, process: Process) -> None:
        self._pidfds[process.pidfd] = process
        self._epoll.register(process.pidfd, select.EPOLLIN)

    def _died(self, pidfd: int) -> None:
        """A process ended: files that it alone held are let go, so that their locks are. A kill is no operation of anyone's."""
        process = self._pidfds.pop(pidfd)
        self._epoll.unregister(pidfd)
        self._tree.processes.died(process)
        self._tree.descriptors.died(process)
        for held in [held for held in self.holds + self._waiting if held.call.process is process]:
            (self.holds if held in self.holds else self._waiting).remove(held)
            if held.waits_for is not None:
                self._epoll.unregister(held.waits_for)
            held.steps.close()
        for description in self._tree.descriptors.abandoned():
            self._tree.descriptors.release(description)


def _lives(call: Call) -> bool:
    """Is the thread still there, and not a zombie?"""
    try:
        with open(f"/proc/{call.tid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _allow_many_descriptors() -> None:
    """The supervisor holds a copy of every open file of its trees."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


