"""One notified system call, and how a handler of calls talks with the gate: what it waits for, what it answers."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final, NamedTuple

from chaosckpt.gate import syscalls as k
from chaosckpt.model.operation import Operation, When

if TYPE_CHECKING:
    from chaosckpt.gate.processes import Process


class Call(NamedTuple):
    """A call as the kernel reported it. `arguments` are six unsigned 64-bit numbers."""

    identity: int
    tid: int
    process: Process
    number: int
    instruction: int
    arguments: tuple[int, ...]

    def descriptor(self, index: int) -> int:
        """Argument `index` as the unsigned 32-bit number that the kernel takes a descriptor for."""
        return self.arguments[index] & 0xFFFFFFFF

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for a call and its restart after a signal."""
        return self.number, self.instruction, self.arguments[: k.ARITIES[self.number]]

    def signed(self, index: int) -> int:
        value = self.arguments[index]
        return value - (1 << 64) if value >> 63 else value

    def word(self, index: int) -> int:
        """Argument `index` as an unsigned 32-bit number: flags and modes."""
        return self.arguments[index] & 0xFFFFFFFF


class Pause(NamedTuple):
    """A handler stops here until its call is resumed: the decision was a Hold. The caller loses its file at `discard`."""

    operation: Operation
    when: When
    discard: int | None = None


class Readable(NamedTuple):
    """A handler stops here until this descriptor of ours can be read: a pipe that has no data yet."""

    descriptor: int


class Continue:
    """The kernel performs the call itself."""


CONTINUE: Final = Continue()


class Inject(NamedTuple):
    """The caller gets our `descriptor` at `number`, and that number as the call's result. A lent one is then closed."""

    descriptor: int
    number: int
    cloexec: bool
    lent: bool = False


class Discard(NamedTuple):
    """A close that failed: the caller loses its file at `number` all the same, and learns the error number `error`."""

    number: int
    error: int


Reply = int | Continue | Inject | Discard
"""What the caller gets; an int is the call's result, negative for an error number."""
Wait = Pause | Readable
Steps = Generator[Wait, None, Reply]
