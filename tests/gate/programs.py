"""Random programs of system calls: values that Hypothesis draws, and the interpreter that runs them in a child."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

Step = tuple[Any, ...]

NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "l", "d/l"]
DIRECTORIES = ["d", "d/e", "f"]
FORMS = ["plain", "absolute", "dirfd", "proc", "dots", "outside", "slash"]
OPEN_FLAGS = [
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT,
    os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    os.O_RDWR | os.O_CREAT | os.O_EXCL,
    os.O_WRONLY,
    os.O_RDWR | os.O_TRUNC,
    os.O_RDONLY,
    os.O_RDONLY | os.O_CREAT,
    os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW,
]
LIBC = ctypes.CDLL(None, use_errno=True)

names = st.sampled_from(NAMES)
paths = st.tuples(names, st.sampled_from(FORMS))
slots = st.integers(0, 3)
sizes = st.sampled_from([0, 1, 7, 4096, 70000])
offsets = st.sampled_from([0, 3, 4096, 100000])
modes = st.sampled_from([0o600, 0o644, 0o755, 0o777, 0o444])
data = st.tuples(st.integers(0, 255), sizes)

STEPS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "open": (slots, paths, st.sampled_from(OPEN_FLAGS), modes),
    "tmpfile": (slots, st.sampled_from([".", "d"])),
    "name_tmpfile": (slots, paths),
    "close": (slots,),
    "close_range": (slots, slots),
    "write": (slots, data),
    "writev": (slots, st.lists(data, max_size=3)),
    "pwrite": (slots, data, offsets),
    "pwritev": (slots, st.lists(data, max_size=3), offsets),
    "append": (slots, data),
    "seek": (slots, offsets),
    "ftruncate": (slots, offsets),
    "truncate": (paths, offsets),
    "fallocate": (slots, st.sampled_from([0, 1, 3, 0x10]), offsets, sizes),
    "fchmod": (slots, modes),
    "chmod": (paths, modes),
    "fsync": (slots,),
    "dup": (slots, slots),
    "dup2": (slots, slots),
    "dup3_band": (slots, st.integers(0, 40)),
    "dupfd": (slots, slots, st.sampled_from([0, 3, 60, 100000])),
    "sendfile": (slots, slots, offsets, sizes),
    "copy_range": (slots, slots, sizes, st.none() | offsets, st.none() | offsets),
    "splice": (slots, data),
    "copyfile": (paths, paths),
    "rename": (paths, paths),
    "exchange": (paths, paths),
    "noreplace": (paths, paths),
    "link": (paths, paths),
    "symlink": (names, paths),
    "unlink": (paths,),
    "rmdir": (paths,),
    "mkdir": (paths, modes),
    "rmtree": (paths,),
    "chdir": (st.sampled_from(["", "d", "d/e"]),),
    "umask": (st.sampled_from([0, 0o22, 0o77]),),
    "move_in": (paths, data),
    "move_out": (paths,),
    "exec_away": (),
}

drawn = {name: st.tuples(st.just(name), *fields) for name, fields in STEPS.items()}
OFTEN = ["write", "writev", "pwrite", "open", "copy_range", "sendfile", "dup", "rename", "fork"]
single = st.one_of(*(strategy for name, strategy in drawn.items() for _ in range(3 if name in OFTEN else 1)))


def _opened(slot: int) -> st.SearchStrategy[Step]:
    """Most programs begin with open files, without which half of the steps would do nothing."""
    return st.tuples(st.just("open"), st.just(slot), paths, st.sampled_from(OPEN_FLAGS[:4]), modes)


start = st.tuples(st.just(("mkdir", ("d", "plain"), 0o755)), *map(_opened, range(3))).map(list)


def programs(*, processes: bool) -> st.SearchStrategy[list[Step]]:
    """Programs of one process, or of one with children."""
    steps = st.lists(single, min_size=1, max_size=25)
    if not processes:
        return st.tuples(start, steps).map(lambda drawn: drawn[0] + drawn[1])
    forks = st.tuples(st.just("fork"), st.lists(single, max_size=10), st.booleans())
    mixed = st.lists(st.one_of(single, single, single, forks), min_size=1, max_size=25)
    return st.tuples(start, mixed, forks, mixed).map(lambda drawn: [*drawn[0], *drawn[1], drawn[2], *drawn[3]])


class Interpreter:
    """Runs steps in one process; a step that can't be done is skipped, as the program's error would be."""

    def __init__(self, root: str, outside: str, band: int) -> None:
        self.root, self.outside, self.band = root, outside, band
        self.files: dict[int, int] = {}
        self.children: list[int] = []

    def run(self, steps: list[Step]) -> list[str]:
        """What each step came to: a result, or an error number."""
        outcomes = []
        for name, *arguments in steps:
            try:
                outcomes.append(f"{name} {getattr(self, name)(*arguments)}")
            except (OSError, KeyError, ValueError, RecursionError) as error:
                outcomes.append(f"{name} {type(error).__name__} {getattr(error, 'errno', None)}")
        return outcomes

    def finish(self) -> None:
        for child in self.children:
            os.waitpid(child, 0)

    @contextlib.contextmanager
    def at(self, path: tuple[str, str]) -> Iterator[tuple[str, int | None]]:
        """(text, dirfd) of a path in one of its forms."""
        name, form = path
        if form == "dirfd":
            directory = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            try:
                yield name, directory
            finally:
                os.close(directory)
            return
        yield (
            {
                "plain": name if os.getcwd() == self.root else f"{self.root}/{name}",
                "absolute": f"{self.root}/{name}",
                "proc": f"/proc/self/cwd/{os.path.relpath(os.path.join(self.root, name))}",
                "dots": f"{self.root}/d/../{name}",
                "outside": f"{self.outside}/link/{name}",
                "slash": f"{self.root}//{name}/",
            }[form],
            None,
        )

    def fork(self, steps: list[Step], wait: bool) -> None:
        pid = os.fork()
        if not pid:
            try:
                self.children = []
                self.run(steps)
            finally:
                os._exit(0)
        if wait:
            os.waitpid(pid, 0)
        else:
            self.children.append(pid)

    def open(self, slot: int, path: tuple[str, str], flags: int, mode: int) -> None:
        with self.at(path) as (name, directory):
            self._put(slot, os.open(name, flags, mode, dir_fd=directory))

    def _put(self, slot: int, descriptor: int) -> None:
        earlier = self.files.pop(slot, None)
        if earlier is not None:
            os.close(earlier)
        self.files[slot] = descriptor

    def tmpfile(self, slot: int, directory: str) -> None:
        self._put(slot, os.open(f"{self.root}/{directory}", os.O_TMPFILE | os.O_RDWR, 0o640))

    def name_tmpfile(self, slot: int, path: tuple[str, str]) -> int:
        if not os.readlink(f"/proc/self/fd/{self.files[slot]}").startswith(self.root):
            return -1  # Moved out, and not to come back: its replay has ended there.
        with self.at(path) as (name, directory):
            source = b"/proc/self/fd/%d" % self.files[slot]
            return int(LIBC.linkat(-100, source, -100 if directory is None else directory, os.fsencode(name), 0x400))

    def close(self, slot: int) -> None:
        os.close(self.files.pop(slot))

    def close_range(self, first: int, last: int) -> None:
        low, high = sorted((self.files[first], self.files[last]))
        if low < self.band:
            return
        os.closerange(low, high + 1)
        self.files = {slot: number for slot, number in self.files.items() if not low <= number <= high}

    def write(self, slot: int, data: tuple[int, int]) -> int:
        return os.write(self.files[slot], _bytes(data))

    def writev(self, slot: int, data: list[tuple[int, int]]) -> int:
        return os.writev(self.files[slot], [_bytes(piece) for piece in data])

    def pwrite(self, slot: int, data: tuple[int, int], offset: int) -> int:
        return os.pwrite(self.files[slot], _bytes(data), offset)

    def pwritev(self, slot: int, data: list[tuple[int, int]], offset: int) -> int:
        return os.pwritev(self.files[slot], [_bytes(piece) for piece in data], offset)

    def append(self, slot: int, data: tuple[int, int]) -> int:
        return os.pwritev(self.files[slot], [_bytes(data)], 0, 0x10)

    def seek(self, slot: int, offset: int) -> int:
        return os.lseek(self.files[slot], offset, os.SEEK_SET)

    def ftruncate(self, slot: int, length: int) -> None:
        os.ftruncate(self.files[slot], length)

    def truncate(self, path: tuple[str, str], length: int) -> None:
        with self.at(path) as (name, directory):
            if directory is None:
                os.truncate(name, length)

    def fallocate(self, slot: int, mode: int, offset: int, length: int) -> int:
        return int(LIBC.fallocate(self.files[slot], mode, ctypes.c_long(offset), ctypes.c_long(length)))

    def fchmod(self, slot: int, mode: int) -> None:
        os.fchmod(self.files[slot], mode)

    def chmod(self, path: tuple[str, str], mode: int) -> None:
        with self.at(path) as (name, directory):
            if not os.path.isdir(f"{self.root}/{path[0]}"):
                os.chmod(name, mode, dir_fd=directory)

    def fsync(self, slot: int) -> None:
        os.fsync(self.files[slot])

    def dup(self, slot: int, to: int) -> None:
        self._put(to, os.dup(self.files[slot]))

    def dup2(self, slot: int, to: int) -> None:
        if slot != to and self.files[to] >= self.band:
            os.dup2(self.files[slot], self.files[to])

    def dup3_band(self, slot: int, number: int) -> None:
        """The program itself picks a number of the band, which may be a tracked file's or nobody's."""
        target = self.band + number
        for other in [other for other, used in self.files.items() if used == target and other != slot]:
            del self.files[other]
        os.dup2(self.files[slot], target, inheritable=False)
        if self.files[slot] != target:
            self._put(slot, target)

    def dupfd(self, slot: int, to: int, minimum: int) -> None:
        import fcntl

        self._put(to, fcntl.fcntl(self.files[slot], fcntl.F_DUPFD_CLOEXEC, minimum))

    def sendfile(self, out: int, source: int, offset: int, count: int) -> int:
        return os.sendfile(self.files[out], self.files[source], offset if offset % 2 else None, count)

    def copy_range(self, source: int, out: int, count: int, first: int | None, second: int | None) -> int:
        return os.copy_file_range(self.files[source], self.files[out], count, first, second)

    def splice(self, out: int, data: tuple[int, int]) -> None:
        reader, writer = os.pipe()
        try:
            os.write(writer, _bytes(data)[:4096])
            os.close(writer)
            os.splice(reader, self.files[out], 4096) if sys.version_info >= (3, 10) else None
        finally:
            os.close(reader)

    def copyfile(self, source: tuple[str, str], to: tuple[str, str]) -> None:
        shutil.copyfile(f"{self.root}/{source[0]}", f"{self.root}/{to[0]}")

    def rename(self, source: tuple[str, str], to: tuple[str, str]) -> None:
        with self.at(source) as (one, first), self.at(to) as (other, second):
            os.rename(one, other, src_dir_fd=first, dst_dir_fd=second)

    def exchange(self, source: tuple[str, str], to: tuple[str, str]) -> int:
        return self._renameat2(source, to, 2)

    def noreplace(self, source: tuple[str, str], to: tuple[str, str]) -> int:
        return self._renameat2(source, to, 1)

    def _renameat2(self, source: tuple[str, str], to: tuple[str, str], flags: int) -> int:
        with self.at(source) as (one, first), self.at(to) as (other, second):
            numbers = [-100 if number is None else number for number in (first, second)]
            return int(LIBC.renameat2(numbers[0], os.fsencode(one), numbers[1], os.fsencode(other), flags))

    def link(self, source: tuple[str, str], to: tuple[str, str]) -> None:
        with self.at(source) as (one, first), self.at(to) as (other, second):
            os.link(one, other, src_dir_fd=first, dst_dir_fd=second, follow_symlinks=False)

    def symlink(self, target: str, path: tuple[str, str]) -> None:
        with self.at(path) as (name, directory):
            os.symlink(target, name, dir_fd=directory)

    def unlink(self, path: tuple[str, str]) -> None:
        with self.at(path) as (name, directory):
            os.unlink(name, dir_fd=directory)

    def rmdir(self, path: tuple[str, str]) -> None:
        with self.at(path) as (name, directory):
            os.rmdir(name, dir_fd=directory)

    def mkdir(self, path: tuple[str, str], mode: int) -> None:
        with self.at(path) as (name, directory):
            os.mkdir(name, mode | 0o700, dir_fd=directory)

    def rmtree(self, path: tuple[str, str]) -> None:
        shutil.rmtree(f"{self.root}/{path[0]}")

    def chdir(self, where: str) -> None:
        os.chdir(f"{self.root}/{where}")

    def umask(self, mask: int) -> None:
        os.umask(mask)

    def move_in(self, path: tuple[str, str], data: tuple[int, int]) -> None:
        name = f"{self.outside}/incoming-{os.getpid()}"
        with open(name, "wb") as file:
            file.write(_bytes(data))
        os.rename(name, f"{self.root}/{path[0]}")

    def move_out(self, path: tuple[str, str]) -> None:
        os.rename(f"{self.root}/{path[0]}", f"{self.outside}/outgoing-{os.getpid()}")

    def exec_away(self) -> None:
        """A child that is another program: it inherits what is not close-on-exec, and ends."""
        pid = os.fork()
        if not pid:
            try:
                os.execv("/bin/true", ["true"])
            finally:
                os._exit(1)
        os.waitpid(pid, 0)


def _bytes(data: tuple[int, int]) -> bytes:
    value, size = data
    return (
        bytes((value + index) % 256 for index in range(min(size, 256))) * (size // 256 + 1)
        if size > 256
        else bytes([value]) * size
    )


def program(steps: list[Step], root: str, outside: str, band: int) -> Callable[[], None]:
    """What the child runs; the outcomes of its steps are left in `outside`."""

    def body() -> None:
        os.umask(0o22)
        os.chdir(root)
        interpreter = Interpreter(root, outside, band)
        outcomes = interpreter.run(steps)
        interpreter.finish()
        with open(f"{outside}/outcomes", "w", encoding="utf-8") as file:
            file.write("\n".join(outcomes))

    return body
