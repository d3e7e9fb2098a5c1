"""Tracked open file descriptions, and the numbers under which the processes of a tree hold them.

A number of the band means one description in the whole tree, so that it needs no lookup by process. The exceptions (a
program that uses the band's numbers itself, or holds a tracked file at a low number) are *private* to a process.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable

from chaosckpt.gate.kernel import same_description, same_table
from chaosckpt.gate.processes import Process, Processes


class Description:
    """An open file description that we share with the tree. `path` is canonical and follows renames.

    `awaiting` is the process that has opened it and hasn't got its number yet, because its call is held.
    """

    __slots__ = ("awaiting", "descriptor", "handle", "incarnation", "numbers", "path", "raw")

    def __init__(self, descriptor: int, handle: int, path: bytes, raw: str, incarnation: int) -> None:
        self.descriptor = descriptor
        self.handle = handle
        self.path = path
        self.raw = raw
        self.incarnation = incarnation
        self.numbers: set[int] = set()
        self.awaiting: Process | None = None

    def status(self) -> int:
        """The open flags now in force: fcntl(F_SETFL) goes past us."""
        return fcntl.fcntl(self.descriptor, fcntl.F_GETFL)


class Descriptors:
    """The table of one tree: numbers in [base, limit), each free, tracked, or used by the program itself."""

    def __init__(self, base: int, limit: int, processes: Processes) -> None:
        self.base = base
        self.limit = limit
        self._processes = processes
        self._next = base
        self._handles = 0
        self._by_number: dict[int, Description] = {}
        self._private: dict[tuple[int, int], Description | None] = {}
        self._claimed: set[int] = set()
        self.open: dict[int, Description] = {}

    def reserve(self) -> int:
        """The handle of the next description: each is used once."""
        self._handles += 1
        return self._handles

    def add(self, handle: int, descriptor: int, path: bytes, raw: str, incarnation: int) -> Description:
        """Keep a descriptor of ours as a description, so far without a number."""
        description = self.open[handle] = Description(descriptor, handle, path, raw, incarnation)
        return description

    def find(self, process: Process, number: int) -> Description | None:
        if self._private:
            key = (process.pid, number)
            if key in self._private:
                return self._private[key]
        return self._by_number.get(number)

    def process(self, pid: int) -> Process | None:
        return self._processes.alive.get(pid)

    def in_band(self, number: int) -> bool:
        return self.base <= number < self.limit

    def free(self, process: Process, minimum: int = 0) -> int:
        """A number that no process of the tree uses, so that it names one description. EMFILE when there is none."""
        others = self._processes.discover() if self._processes.several else [process]
        span = self.limit - self.base
        for step in range(span):
            number = self.base + (self._next - self.base + step) % span
            if number < minimum or number in self._by_number or number in self._claimed:
                continue
            if not any(os.path.lexists(f"/proc/{other.pid}/fd/{number}") for other in others):
                self._next = number + 1
                return number
        raise OSError(errno.EMFILE, "no free descriptor number in the band")

    def assign(self, process: Process, number: int, description: Description) -> None:
        """From now on `number` is `description` in this process."""
        process.gone.discard(number)
        self._claimed.discard(number)
        present = self._by_number.get(number)
        if self.in_band(number) and present in (None, description):
            self._by_number[number] = description
            description.numbers.add(number)
            self._private.pop((process.pid, number), None)
        else:
            self._private[process.pid, number] = description

    def claim(self, process: Process, number: int) -> None:
        """The program itself puts an untracked file at this number of the band."""
        if number in self._by_number:
            self._private[process.pid, number] = None
        else:
            self._claimed.add(number)

    def unclaim(self, process: Process, number: int) -> None:
        self._claimed.discard(number)
        if self._private.get((process.pid, number), number) is None:
            del self._private[process.pid, number]

    def leave(self, process: Process, number: int) -> None:
        """This process gives up `number`, though the kernel may not have closed it yet."""
        if self._private.pop((process.pid, number), None) is None:
            process.gone.add(number)
            description = self._by_number.get(number)
            if description is not None and not self._holds_elsewhere(description, number):
                del self._by_number[number]
                description.numbers.discard(number)

    def last(self, process: Process, number: int, description: Description) -> bool:
        """Is this the only reference in the tree?"""
        return not self._held(description, self._processes.discover(), besides=(process, number))

    def abandoned(self) -> list[Description]:
        """Descriptions that no process holds any more, oldest first."""
        present = self._processes.discover()
        return [description for description in self.open.values() if not self._held(description, present, besides=None)]

    def sole_holder(self, process: Process) -> list[Description]:
        """Descriptions that only this process holds, oldest first: its exit closes them."""
        others = [other for other in self._processes.discover() if not self._is_part(other, process)]
        return [description for description in self.open.values() if not self._held(description, others, besides=None)]

    def held_numbers(self, process: Process, first: int, last: int) -> list[int]:
        """The tracked numbers in [first, last] that this process holds, ascending."""
        private = {number for (pid, number), description in self._private.items() if pid == process.pid and description}
        shared = {number for number in self._by_number if (process.pid, number) not in self._private}
        found = sorted(number for number in private | shared if first <= number <= last and number not in process.gone)
        if not self._processes.several:
            return found
        mine = ((number, self.find(process, number)) for number in found)
        return [number for number, it in mine if it and same_description(process.pid, number, it.descriptor)]

    def release(self, description: Description) -> None:
        """Close our copy and forget the description."""
        if self.open.pop(description.handle, None) is None:
            return
        for number in description.numbers:
            self._by_number.pop(number, None)
        for key in [key for key, value in self._private.items() if value is description]:
            del self._private[key]
        os.close(description.descriptor)

    def inherit(self, child: Process) -> None:
        """A new process has its parent's private numbers, where it did not close them since."""
        for (pid, number), description in list(self._private.items()):
            if pid == child.parent and (
                description is None or same_description(child.pid, number, description.descriptor)
            ):
                self._private[child.pid, number] = description

    def died(self, process: Process) -> None:
        for key in [key for key in self._private if key[0] == process.pid]:
            del self._private[key]

    def moved(self, old: bytes, new: bytes, raw: Callable[[bytes], str], *, exchanged: bool) -> None:
        """A rename: what is open below `old` is now below `new` (and the other way round when exchanged)."""
        for description in self.open.values():
            path = description.path
            if below(path, old):
                description.path = new + path[len(old) :]
            elif exchanged and below(path, new):
                description.path = old + path[len(new) :]
            else:
                continue
            description.raw = raw(description.path)

    def close(self) -> None:
        for description in list(self.open.values()):
            self.release(description)

    def _held(self, description: Description, processes: list[Process], besides: tuple[Process, int] | None) -> bool:
        """Does one of these processes hold it, apart from one number of one process?"""
        several = self._processes.several
        for process in processes:
            if process.exiting:
                continue
            if description.awaiting is process:
                return True
            numbers = description.numbers - process.gone
            if self._private:
                numbers = {n for n in numbers if (process.pid, n) not in self._private}
                numbers |= {
                    n for (pid, n), value in self._private.items() if pid == process.pid and value is description
                }
            if besides and besides[1] in numbers and self._is_part(process, besides[0]):
                numbers.discard(besides[1])
            certain = not several and not process.executing and besides is not None
            for number in numbers:
                if certain or same_description(process.pid, number, description.descriptor):
                    return True
        return False

    def _is_part(self, process: Process, other: Process) -> bool:
        return process is other or (self._processes.several and same_table(process.pid, other.pid))

    def _holds_elsewhere(self, description: Description, number: int) -> bool:
        """Does any process still hold this description at this number?"""
        return any(
            number not in process.gone and same_description(process.pid, number, description.descriptor)
            for process in self._processes.discover()
            if not process.exiting
        )


def below(path: bytes, top: bytes) -> bool:
    """Is `path` the canonical path `top` itself, or under it?"""
    return path == top or path.startswith(top + b"/")
