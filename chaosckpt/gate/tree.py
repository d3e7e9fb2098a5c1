"""What the gate knows of one process tree, and how one operation is decided, performed and observed."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Generator, Sequence
from typing import Any

from msgspec.structs import replace

from chaosckpt.gate.call import CONTINUE, Call, Pause, Reply, Steps, Wait
from chaosckpt.gate.descriptors import Description, Descriptors
from chaosckpt.gate.fence.guard import Guard
from chaosckpt.gate.kernel import pidfd_getfd
from chaosckpt.gate.memory import ProcessMemory
from chaosckpt.gate.paths import ResolvedPath, Resolver, Root
from chaosckpt.gate.processes import Process, Processes
from chaosckpt.model.fault import Decision, Errno, Hold
from chaosckpt.model.operation import Address, Operation, Role

_OF_PROCESS = re.compile(rb"/proc/(\d+)(?:/|$)")


class Addresses:
    """Hands out each address once. `decode` maps a path with nonces to the path that faults name."""

    def __init__(self, rank: int, decode: Callable[[str], str]) -> None:
        self._rank = rank
        self._decode = decode
        self._incarnations: dict[str, int] = {}
        self._counts: dict[tuple[Role, str, str, int], int] = {}

    def decoded(self, raw: str) -> str:
        """The path as addresses name it."""
        return self._decode(raw)

    def incarnation(self, raw: str) -> int:
        return self._incarnations.get(self._decode(raw), 0)

    def begin(self, raw: str) -> int:
        """The path is about to be opened with O_CREAT or O_TRUNC."""
        path = self._decode(raw)
        self._incarnations[path] = number = self._incarnations.get(path, 0) + 1
        return number

    def take(self, role: Role, op: str, raw: str, incarnation: int | None = None) -> Address:
        """The next address; `incarnation` is the open file's own, for calls by descriptor."""
        path = self._decode(raw)
        if incarnation is None:
            incarnation = self._incarnations.get(path, 0)
        key = (role, op, path, incarnation)
        nth = self._counts[key] = self._counts.get(key, -1) + 1
        return Address(self._rank, role, op, path, incarnation, nth)

    def moved(self, old: str, new: str, *, exchanged: bool) -> None:
        """A rename takes the incarnation along; a path never goes back to an earlier one."""
        one, other = self._decode(old), self._decode(new)
        arrivals = self._under(one, other)
        if exchanged:
            arrivals |= self._under(other, one)
        for path, number in arrivals.items():
            self._incarnations[path] = max(number, self._incarnations.get(path, 0))

    def _under(self, old: str, new: str) -> dict[str, int]:
        return {
            new + path[len(old) :]: number
            for path, number in self._incarnations.items()
            if path == old or path.startswith(old + "/")
        }


class Tree:
    """State shared by the handlers of calls. Nothing here answers a call: the supervisor does."""

    def __init__(
        self,
        *,
        base: int,
        limit: int,
        rank: int,
        roots: Sequence[Root],
        decide: Callable[[Operation], Decision],
        observe: Callable[[Operation], None],
        keep_data: bool,
        decode: Callable[[str], str],
        low_descriptors: bool,
        born: Callable[[Process], None],
        hidden: Callable[[Operation, Sequence[str]], None],
        guard: Guard | None = None,
        many_ranks: bool = False,
    ) -> None:
        self.decide = decide
        self.observe = observe
        self.hidden = hidden
        self.keep_data = keep_data
        self.low_descriptors = low_descriptors
        self.memory = ProcessMemory()
        self.guard = guard
        self._rank = rank
        self._decode = decode
        self._addresses: dict[int, Addresses] = {}
        self.untraced: list[str] = []
        self.caller = 0
        """The thread of the last operation."""
        self._sequence = 0
        self._born = born
        self.processes = Processes(self._arrived, many_ranks=many_ranks)
        self.descriptors = Descriptors(base, limit, self.processes)
        self.resolver = Resolver(roots, self.descriptors)

    # What a call names

    def text(self, call: Call, index: int) -> bytes:
        return self.memory.text(call.tid, call.arguments[index])

    def place(self, call: Call, directory: int | None, index: int, *, follow: bool) -> ResolvedPath:
        """The place named by path argument `index`, relative to descriptor argument `directory` (None: the cwd)."""
        start = 0xFFFFFF9C if directory is None else call.descriptor(directory)
        return self.resolver.place(call.process, call.tid, start, self.text(call, index), follow=follow)

    def entry(self, call: Call, directory: int | None, index: int) -> ResolvedPath:
        """The same for a call that makes, moves or removes the name itself."""
        start = 0xFFFFFF9C if directory is None else call.descriptor(directory)
        return self.resolver.place(call.process, call.tid, start, self.text(call, index), follow=False, entry=True)

    def held(self, call: Call, index: int) -> Description | None:
        """The tracked file behind descriptor argument `index`.

        A number that we know nothing of can still be one: of a child forked while another thread closed it.
        """
        number = call.descriptor(index)
        found = self.descriptors.find(call.process, number)
        if found is None and self.descriptors.in_band(number) and number not in call.process.gone:
            found = self._adopt(call.process, number)
        return found

    def note(self, sentence: str) -> None:
        """Record what could not be traced, once."""
        if sentence not in self.untraced:
            self.untraced.append(sentence)

    def addresses(self, process: Process) -> Addresses:
        """The addresses of the rank that this process is or belongs to."""
        named = self.processes.rank(process)
        rank = self._rank if named is None else named
        if rank not in self._addresses:
            self._addresses[rank] = Addresses(rank, self._decode)
        return self._addresses[rank]

    def moved(self, old: str, new: str, *, exchanged: bool) -> None:
        """A file has another name, for every rank."""
        for addresses in self._addresses.values():
            addresses.moved(old, new, exchanged=exchanged)

    def outside(self, path: bytes, doing: str, *, opening: bool = False) -> Reply:
        """What is answered to a call that would change this path outside every root, or with `opening` open it for writing."""
        guard = self.guard
        if guard is None or guard.allows(path, opening=opening) or self._is_own_process(path):
            return CONTINUE
        try:
            os.lstat(path)
        except OSError as error:
            return -(error.errno or errno.ENOENT)  # what isn't there can't be changed, and that is no refusal
        guard.refuse(path, doing)
        return -errno.EACCES

    def made_outside(self, path: bytes, doing: str) -> Reply:
        """What is answered to a call that would make this name outside every root."""
        guard = self.guard
        if guard is None or guard.allows(path) or self._is_own_process(path):
            return CONTINUE
        if os.path.lexists(path):
            return -errno.EEXIST
        if guard.may_make(path):
            return CONTINUE
        guard.refuse(path, doing)
        return -errno.EACCES

    def outside_descriptor(self, call: Call, index: int, doing: str) -> Reply:
        """What is answered to a call that would change the untracked file behind a descriptor, which may be open for reading only."""
        try:
            path = os.readlink(b"/proc/%d/task/%d/fd/%d" % (call.process.pid, call.tid, call.descriptor(index)))
        except OSError:
            return CONTINUE  # the kernel says that it is none
        if self.resolver.raw(path) is not None or not os.path.lexists(path):
            return CONTINUE  # of a file without a name nothing is left, and pipes and sockets have none
        return self.outside(path, doing)

    def _is_own_process(self, path: bytes) -> bool:
        """Whether it lies in the /proc directory of a process of this tree."""
        found = _OF_PROCESS.match(path)
        return found is not None and self.processes.owns(int(found[1]))

    def refused(self, what: str) -> None:
        """Record, once, what was not let through."""
        if self.guard is not None:
            self.guard.note(what)
        else:
            self.note(f"{what} was refused")

    # Operations

    def operation(
        self,
        call: Call,
        op: str,
        raw: str,
        *,
        held: Description | None = None,
        incarnation: int | None = None,
        **fields: Any,
    ) -> Operation:
        """A new operation with the next address. The address names the path inside the roots, if there are two."""
        named = fields["destination"] if raw.startswith("/") and fields.get("destination") else raw
        if held is not None:
            incarnation = held.incarnation
            fields["handle"] = held.handle
        role = self.processes.role(call.tid, call.process)
        address = self.addresses(call.process).take(role, op, named, incarnation)
        self._sequence += 1
        self.caller = call.tid
        return Operation(address=address, sequence=self._sequence, raw=raw, **fields)

    def decided(self, operation: Operation) -> Generator[Wait, None, Decision]:
        """What is to be made of an operation; one that is held and then decided again waits here. Raises the injected OSError."""
        decision = self.decide(operation)
        while isinstance(decision, Hold) and decision.again:
            yield Pause(operation, "before")
            decision = self.decide(operation)
        if isinstance(decision, Errno):
            self.observe(replace(operation, result=-decision.number))
            raise OSError(decision.number, "injected")
        return decision

    def perform(
        self, operation: Operation, action: Callable[[], int], discard: int | None = None
    ) -> Generator[Wait, None, int]:
        """Decide, perform and observe. Returns the call's result; raises its OSError, injected or real."""
        decision = yield from self.decided(operation)
        return (yield from self.carry_out(operation, decision, action, discard))

    def carry_out(
        self, operation: Operation, decision: Decision, action: Callable[[], int], discard: int | None = None
    ) -> Generator[Wait, None, int]:
        """Perform and observe what was decided."""
        after = isinstance(decision, Hold) and decision.when == "after"
        if isinstance(decision, Hold) and not after:
            yield Pause(operation, "before")
        failure = None
        result = 0
        try:
            result = action()
        except OSError as error:
            failure = error
        self.observe(replace(operation, result=result if failure is None else -(failure.errno or errno.EIO)))
        if after:
            yield Pause(operation, "after", discard)
        if failure is not None:
            raise failure
        return result

    def by_path(
        self, call: Call, op: str, place: ResolvedPath, action: Callable[[], Any], **fields: Any
    ) -> Generator[Wait, None, int]:
        """An operation on a tracked place, whose action's value is of no interest: success is 0."""
        held = place.description

        def act() -> int:
            action()
            return 0

        result = yield from self.perform(self.operation(call, op, place.raw or "", held=held, **fields), act)
        return result

    def died(self, process: Process) -> None:
        """Let go of what a dead process held."""
        self.processes.died(process)
        self.descriptors.died(process)
        for description in self.descriptors.abandoned():
            self.descriptors.release(description)

    def _arrived(self, process: Process) -> None:
        self.descriptors.inherit(process)
        self._born(process)

    def _adopt(self, process: Process, number: int) -> Description | None:
        try:
            path = os.readlink(b"/proc/%d/fd/%d" % (process.pid, number))
            raw = self.resolver.raw(path)
            if raw is None:
                return None
            own = pidfd_getfd(process.pidfd, number)
        except OSError:
            return None
        description = self.descriptors.add(
            self.descriptors.reserve(), own, path, raw, self.addresses(process).incarnation(raw)
        )
        self.descriptors.assign(process, number, description)
        return description


Handler = Callable[[Tree, Call], Steps | Reply]
"""Answers at once, or in steps between which it waits. An OSError that it raises becomes the call's error."""
