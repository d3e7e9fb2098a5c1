"""The memory of a process under the gate: strings, vectors and bytes that its calls point at.

Every function raises OSError(EFAULT) for a pointer that the kernel would refuse too.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.kernel import fail, libc

CHUNK = 1 << 20
"""Bytes moved at once: the supervisor's memory stays this small, whatever a program writes."""
_PAGE = 4096
_LONGEST_PATH = 4096
_MOST_SEGMENTS = 1024

Segment = tuple[int, int]
"""(address, bytes)."""


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class ProcessMemory:
    """Reads through one buffer: a view that `gather` returned is valid until its next call."""

    def __init__(self) -> None:
        self._buffer = (ctypes.c_char * CHUNK)()
        self._view = memoryview(self._buffer).cast("B")
        self._local = _Vector(ctypes.addressof(self._buffer), 0)
        self._remote = _Vector(0, 0)

    def gather(self, pid: int, segments: Sequence[Segment], start: int, count: int) -> memoryview:
        """Bytes [start, start + count) of the joined segments; fewer where memory ends, EFAULT where none is there.

        `count` is at most CHUNK.
        """
        if not count:
            return self._view[:0]
        if len(segments) == 1:
            self._remote.base, self._remote.length, pieces, vector = segments[0][0] + start, count, 1, self._remote
        else:
            wanted = _cut(segments, start, count)
            pieces = len(wanted)
            vector = (_Vector * pieces)(*(_Vector(*piece) for piece in wanted))  # type: ignore[assignment]
        self._local.length = count
        done = libc.process_vm_readv(pid, ctypes.byref(self._local), 1, ctypes.byref(vector), pieces, 0)
        if done <= 0:
            raise fail("process_vm_readv") if done else OSError(errno.EFAULT, "no memory there")
        return self._view[:done]

    def read(self, pid: int, address: int, count: int) -> bytes:
        """Exactly `count` bytes."""
        got = bytes(self.gather(pid, ((address, count),), 0, count))
        if len(got) < count:
            raise OSError(errno.EFAULT, "memory ends early")
        return got

    def text(self, pid: int, address: int) -> bytes:
        """A zero-terminated path. ENAMETOOLONG as the kernel has it."""
        found = b""
        while len(found) < _LONGEST_PATH:
            piece = bytes(self.gather(pid, ((address, 0),), 0, _PAGE - (address & (_PAGE - 1))))
            end = piece.find(b"\0")
            if end >= 0:
                found += piece[:end]
                break
            found += piece
            address += len(piece)
        if len(found) >= _LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, "path")
        return found

    def vector(self, pid: int, address: int, count: int) -> list[Segment]:
        """The segments of a `struct iovec[count]`."""
        if not 0 <= count <= _MOST_SEGMENTS:
            raise OSError(errno.EINVAL, "iovec count")
        numbers = struct.unpack(f"={2 * count}Q", self.read(pid, address, 16 * count))
        segments = list(zip(numbers[::2], numbers[1::2], strict=True))
        if any(length > 0x7FFFFFFFFFFFFFFF for _, length in segments):
            raise OSError(errno.EINVAL, "iovec length")
        return segments

    def write(self, pid: int, address: int, data: bytes) -> None:
        source = ctypes.create_string_buffer(data, len(data))
        local, remote = _Vector(ctypes.addressof(source), len(data)), _Vector(address, len(data))
        if libc.process_vm_writev(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) != len(data):
            raise OSError(errno.EFAULT, "process_vm_writev")


def total(segments: Sequence[Segment]) -> int:
    """Bytes in all, as many as one call would move."""
    return min(sum(length for _, length in segments), k.LARGEST_TRANSFER)


def _cut(segments: Sequence[Segment], start: int, count: int) -> list[Segment]:
    """The parts of the segments that make bytes [start, start + count)."""
    wanted = []
    for address, length in segments:
        if start >= length:
            start -= length
            continue
        piece = min(length - start, count)
        wanted.append((address + start, piece))
        count -= piece
        start = 0
        if not count:
            break
    return wanted
