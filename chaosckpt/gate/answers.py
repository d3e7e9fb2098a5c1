"""How notified calls are answered: results, injected descriptors, and calls that a signal took back meanwhile.

Where the kernel can't defer signals (before 5.19), an interrupted call is made again: its result is then remembered and
given to the restart, so that nothing is performed twice. Two things stay open there. A signal that lands between the
kernel's wake-up of the caller and its look at our answer loses that answer unseen (once in thousands of signals). A program
that is told EINTR and repeats the call itself with other pointers makes another call. On every kernel, a signal that comes
before the supervisor has received a call interrupts it with nothing performed; handlers without SA_RESTART, which Python's
are, then see EINTR from calls that never give it natively. So send signals to threads that are held.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import Call, Continue, Discard, Inject, Reply
from chaosckpt.gate.tree import Tree

GONE = (errno.ENOENT, errno.EINTR, errno.ESRCH)
"""What the listener says when the caller has died, or a signal has taken its call back."""


class Answers:
    """Answers over one listener."""

    def __init__(self, listener: int, tree: Tree, *, wait_killable: bool) -> None:
        self._listener = listener
        self._tree = tree
        self._wait_killable = wait_killable
        self._interrupted: dict[int, list[tuple[tuple[object, ...], Reply]]] = {}

    def give(self, call: Call, reply: Reply) -> None:
        """Answer a call. An answer that nobody waits for any more is no error."""
        if isinstance(reply, Discard):
            self.discard(call, reply.number)
            reply = -reply.error
        if isinstance(reply, Inject):
            answered = self._inject(call, reply)
        elif isinstance(reply, Continue):
            answered = self._send(k.NOTIFY_SEND, k.ANSWER.pack(call.identity, 0, 0, k.ANSWER_CONTINUE))
        else:
            answered = self._send(k.NOTIFY_SEND, k.ANSWER.pack(call.identity, max(reply, 0), min(reply, 0), 0))
        if not answered and not self._wait_killable and _lives(call.tid):
            self._interrupted.setdefault(call.tid, []).append((call.key, reply))
        elif isinstance(reply, Inject) and reply.lent:
            os.close(reply.descriptor)

    def repeat(self, call: Call) -> bool:
        """Answer the restart of an interrupted call with that one's result; False when it is no restart."""
        results = self._interrupted.get(call.tid, [])
        for index, (key, reply) in enumerate(results):
            if key == call.key:
                del results[index]
                self.give(call, reply)
                return True
        return False

    def discard(self, call: Call, number: int) -> None:
        """Take a file away from the caller, by putting another one at its number."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            request = k.ADDED_DESCRIPTOR.pack(call.identity, k.ADD_AT_NUMBER, nothing, number, os.O_CLOEXEC)
            self._send(k.NOTIFY_ADD_DESCRIPTOR, request)
        finally:
            os.close(nothing)

    def valid(self, call: Call) -> bool:
        """Does the caller still wait for this very answer?"""
        return self._send(k.NOTIFY_ID_VALID, call.identity.to_bytes(8, "little"))

    def alive(self, call: Call) -> bool:
        """Can the caller still get the answer, now or at its restart?"""
        return self.valid(call) or (not self._wait_killable and _lives(call.tid))

    def close(self) -> None:
        """Forget what was never asked for again."""
        for results in self._interrupted.values():
            for _, reply in results:
                if isinstance(reply, Inject) and reply.lent:
                    os.close(reply.descriptor)
        self._interrupted.clear()

    def _inject(self, call: Call, reply: Inject) -> bool:
        flags = k.ADD_AT_NUMBER | k.ADD_AND_ANSWER
        cloexec = os.O_CLOEXEC if reply.cloexec else 0
        request = k.ADDED_DESCRIPTOR.pack(call.identity, flags, reply.descriptor, reply.number, cloexec)
        try:
            return self._send(k.NOTIFY_ADD_DESCRIPTOR, request)
        except OSError as error:
            if error.errno == errno.EBADF and self._raise_limit(call.process.pid):
                with contextlib.suppress(OSError):
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

    def _send(self, request: int, argument: bytes) -> bool:
        """False when nobody waits for it any more."""
        try:
            fcntl.ioctl(self._listener, request, argument)
        except OSError as error:
            if error.errno in GONE:
                return False
            raise
        return True


def _lives(tid: int) -> bool:
    """Is the thread still there, and not a zombie?"""
    try:
        with open(f"/proc/{tid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
