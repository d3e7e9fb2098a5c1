"""What a job changes outside its fence is refused, by whichever call, and told; nothing there is different afterwards."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from chaosckpt.gate import Root
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.fence.guard import Guard, remove_shared
from tests.gate.driver import launch, serve

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """A system call by its number, so that no library turns it into another one."""
    values = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    result = _libc.syscall(ctypes.c_long(k.NUMBERS[name]), *values)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return int(result)


def link_open_file(number: int, name: str | Path) -> None:
    """A name for what is open, as programs give one to an unnamed file."""
    call("linkat", -100, b"/proc/self/fd/%d" % number, -100, os.fsencode(name), k.AT_SYMLINK_FOLLOW)


def run(program: Callable[[], object], root: Path, guard: Guard) -> list[str]:
    """What was refused to a program whose root this is; it must end well."""

    def led() -> None:
        os.setsid()
        program()

    tree = launch(led, roots=[Root("t", str(root))], guard=guard, low_descriptors=True)
    serve(tree)
    assert tree.status == 0
    return guard.refused


def refused(act: Callable[[], object], *numbers: int) -> None:
    """The call fails with EACCES, or where the kernel doesn't have it with ENOSYS."""
    with pytest.raises(OSError, match=r"\[Errno") as caught:
        act()
    assert caught.value.errno in (errno.EACCES, *numbers), caught.value


def picture(place: Path) -> list[object]:
    """All that can be told of a directory and what it holds."""
    found: list[object] = []
    for path in [place, *sorted(place.rglob("*"))]:
        seen = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        attributes = [(name, os.getxattr(path, name)) for name in os.listxattr(path)] if path.is_file() else []
        found.append(
            (str(path), seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, seen.st_mtime_ns, content, attributes)
        )
    return found


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """(root, canary beside it)."""
    root, canary = tmp_path / "root", tmp_path / "canary"
    root.mkdir()
    (canary / "folder").mkdir(parents=True)
    for name in ("keep", "keep2"):
        (canary / name).write_text("precious")
    return root, canary


def test_attributes(places: tuple[Path, Path]) -> None:
    """Owner, mode, times and extended attributes: by path, by directory, by descriptor, through links and `..`."""
    root, canary = places
    before = picture(canary)
    keep = str(canary / "keep")
    path = os.fsencode(keep)

    def program() -> None:
        os.chdir(root)
        os.symlink(canary, root / "way")
        folder = os.open(canary, os.O_RDONLY | os.O_DIRECTORY)
        number = os.open(keep, os.O_RDONLY)
        for name in (keep, "../canary/keep", "way/keep", f"/proc/self/fd/{number}", f"/proc/self/root{keep}"):
            refused(partial(os.chmod, name, 0))
            refused(partial(os.chown, name, 1, 1))
            refused(partial(os.utime, name, (1, 1)))
            refused(partial(os.setxattr, name, "user.a", b"1"))
        refused(lambda: os.chmod("keep", 0, dir_fd=folder))
        refused(lambda: os.chown("keep", 1, 1, dir_fd=folder))
        refused(lambda: os.utime("keep", (1, 1), dir_fd=folder))
        refused(lambda: os.lchown(keep, 1, 1))
        refused(lambda: os.utime(keep, (1, 1), follow_symlinks=False))
        refused(lambda: os.setxattr(keep, "user.a", b"1", follow_symlinks=False))
        refused(lambda: os.removexattr(keep, "user.a"))
        refused(lambda: os.fchmod(number, 0))
        refused(lambda: os.fchown(number, 1, 1))
        refused(lambda: os.utime(number, (1, 1)))
        refused(lambda: os.setxattr(number, "user.a", b"1"))
        refused(lambda: os.removexattr(number, "user.a"))
        refused(lambda: call("fchmodat2", -100, path, 0, 0), errno.ENOSYS)
        refused(lambda: call("fchmodat2", number, b"", 0, k.AT_EMPTY_PATH), errno.ENOSYS)
        refused(lambda: call("fchownat", number, b"", 1, 1, k.AT_EMPTY_PATH))
        refused(lambda: call("utimensat", number, 0, 0, 0))
        refused(lambda: call("setxattrat", -100, path, 0, b"user.a", 0, 16), errno.ENOSYS)
        refused(lambda: call("removexattrat", folder, b"keep", 0, b"user.a"), errno.ENOSYS)
        refused(lambda: call("ioctl", number, k.FS_IOC_SETFLAGS, bytes(8)))
        if "utime" in k.NUMBERS:
            refused(lambda: call("utime", path, 0))
            refused(lambda: call("utimes", path, 0))
            refused(lambda: call("futimesat", -100, path, 0))

    told = run(program, root, Guard([]))
    assert picture(canary) == before
    assert {it.partition(" of ")[0] for it in told} >= {"chmod", "chown", "utime", "setxattr", "removexattr", "change"}


def test_names(places: tuple[Path, Path]) -> None:
    """Nothing is made, linked, moved or removed; a second name in the root would be a way to write, so that isn't made either."""
    root, canary = places
    before = picture(canary)
    keep, folder = str(canary / "keep"), str(canary / "folder")

    def program() -> None:
        (root / "own").write_text("x")
        there = os.open(canary, os.O_RDONLY | os.O_DIRECTORY)
        for act in (
            lambda: os.mkdir(canary / "made"),
            lambda: os.mkdir("made", dir_fd=there),
            lambda: os.mkdir(f"{root}/../canary/made"),
            lambda: os.mkdir(os.fsencode(canary) + b"/caf\xe9\n"),
            lambda: os.symlink("/etc", canary / "sym"),
            lambda: os.symlink("/etc", "sym", dir_fd=there),
            lambda: os.mkfifo(canary / "pipe"),
            lambda: os.mknod(canary / "node"),
            lambda: os.link(keep, canary / "hard"),
            lambda: os.link(keep, root / "hard"),
            lambda: link_open_file(os.open(keep, os.O_RDONLY), root / "hard"),
            lambda: os.link(root / "own", canary / "hard"),
            lambda: os.rename(keep, root / "moved"),
            lambda: os.rename(root / "own", canary / "moved"),
            lambda: os.rename(root / "own", keep),
            lambda: os.rename(keep, canary / "other"),
            lambda: os.unlink(keep),
            lambda: os.rmdir(folder),
            lambda: os.truncate(keep, 0),
            lambda: os.open(keep, os.O_RDONLY | os.O_TRUNC),
            lambda: os.open(canary, os.O_TMPFILE | os.O_RDWR),
            lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=there),
        ):
            refused(act)

    told = run(program, root, Guard([]))
    assert picture(canary) == before
    assert {it.partition(" of ")[0] for it in told} >= {
        "mkdir",
        "symlink",
        "mknod",
        "link",
        "rename",
        "unlink",
        "rmdir",
    }


def test_what_changes_nothing_is_answered_as_ever(places: tuple[Path, Path]) -> None:
    """A directory that is there, a file that isn't: programs ask so, and it is no refusal. Inside the fence all goes."""
    root, canary = places
    (root.parent / "free").mkdir()

    def program() -> None:
        os.makedirs(canary / "folder", exist_ok=True)
        (canary / "none").unlink(missing_ok=True)
        for act, error in (
            (lambda: os.mkdir(canary / "folder"), FileExistsError),
            (lambda: os.symlink("/etc", canary / "keep"), FileExistsError),
            (lambda: os.chmod(canary / "none", 0), FileNotFoundError),
            (lambda: os.rename(canary / "none", root / "a"), FileNotFoundError),
        ):
            with pytest.raises(error):
                act()
        for place in (root, root.parent / "free"):
            (place / "a").write_text("1")
            os.chmod(place / "a", 0o600)
            os.utime(place / "a", (1, 1))
            os.chown(place / "a", os.getuid(), os.getgid())
            os.link(place / "a", place / "b")
            os.mkdir(place / "c")
            os.symlink("a", place / "s")
            os.rename(place / "b", place / "c" / "b")
        Path("/dev/null").write_text("x")
        Path("/proc/self/comm").write_text("x")
        os.fchmod(os.memfd_create("m"), 0o600)

    assert run(program, root, Guard([str(root.parent / "free")])) == []
    assert (root / "a").stat().st_mtime == 1


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A file of another program's in shared memory; nothing may have happened to it."""
    path = Path(f"/dev/shm/chaosckpt-test-{uuid.uuid4().hex}")
    path.write_text("theirs")
    before = path.stat().st_mtime_ns, path.stat().st_mode
    yield path
    try:
        assert path.read_text() == "theirs"
        assert (path.stat().st_mtime_ns, path.stat().st_mode, path.stat().st_nlink) == (*before, 1)
    finally:
        path.unlink(missing_ok=True)


def test_shared_memory(tmp_path: Path, foreign: Path) -> None:
    """A job makes names of its own, also by way of sem_open's link, and uses them in its next attempt; others' are out of reach."""
    own = Path(f"{foreign}-own")
    made: set[bytes] = set()

    def program() -> None:
        for act in (
            lambda: foreign.open("r+"),
            lambda: foreign.write_text(""),
            lambda: os.truncate(foreign, 0),
            lambda: os.unlink(foreign),
            lambda: os.rename(foreign, own),
            lambda: os.chmod(foreign, 0),
            lambda: os.link(foreign, own),
        ):
            refused(act)
        assert foreign.read_text() == "theirs"
        own.write_text("mine")
        refused(lambda: os.rename(own, foreign))
        os.link(own, f"{own}-2")
        os.rename(f"{own}-2", f"{own}-3")
        os.unlink(f"{own}-3")
        os.mkdir(f"{own}-folder")
        Path(f"{own}-folder/a").write_text("1")
        unnamed = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
        link_open_file(unnamed, f"{own}-4")
        os.unlink(f"{own}-4")

    def again() -> None:
        with open(own, "r+") as file:
            assert file.read() == "mine"
            file.truncate(0)

    try:
        told = run(program, tmp_path, Guard([], made=made))
        assert f"unlink of {foreign}" in told
        assert run(again, tmp_path, Guard([], made=made)) == []
        assert made == {os.fsencode(own), os.fsencode(f"{own}-folder")}
    finally:
        for path in made:
            remove_shared(path)
    assert not own.exists()
    assert not Path(f"{own}-folder").exists()


def test_message_queues(tmp_path: Path) -> None:
    """Another's queue isn't even opened for reading, which would take messages from it; one of the job's own works."""
    name = f"chaosckpt-test-{uuid.uuid4().hex}".encode()
    create = os.O_CREAT | os.O_RDWR
    try:
        call("mq_open", name, create, 0o600, 0)
    except OSError as error:
        pytest.skip(f"no message queues here: {error}")
    made: set[bytes] = set()

    def program() -> None:
        refused(lambda: call("mq_open", name, os.O_RDONLY, 0, 0))
        refused(lambda: call("mq_open", name, create, 0o600, 0))
        refused(lambda: call("mq_unlink", name))
        call("mq_open", name + b"2", create, 0o600, 0)
        call("mq_open", name + b"2", os.O_RDWR, 0, 0)
        call("mq_unlink", name + b"2")
        call("mq_open", name + b"3", create, 0o600, 0)

    try:
        run(program, tmp_path, Guard([], made=made))
        assert made == {b"/dev/mqueue/" + name + b"3"}
        remove_shared(*made)
        with pytest.raises(FileNotFoundError):
            call("mq_unlink", name + b"3")
    finally:
        call("mq_unlink", name)


def test_other_processes_and_the_kernel(tmp_path: Path) -> None:
    """The memory and settings of a process that is none of the job's, and /sys, stay as they are; a child's may be written."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:

        def program() -> None:
            for path in (f"/proc/{other.pid}/mem", f"/proc/{other.pid}/oom_score_adj", "/proc/sys/kernel/hostname"):
                refused(partial(os.open, path, os.O_WRONLY))
            refused(lambda: os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY), errno.ENOENT)
            refused(lambda: call("ptrace", 16, other.pid, 0, 0), errno.EPERM)
            refused(lambda: call("process_vm_writev", other.pid, 0, 0, 0, 0, 0), errno.EPERM)
            child = subprocess.Popen([shutil.which("sleep") or "sleep", "60"])
            os.close(os.open(f"/proc/{child.pid}/oom_score_adj", os.O_WRONLY))
            call("process_vm_writev", child.pid, 0, 0, 0, 0, 0)
            child.kill()
            child.wait()

        told = run(program, tmp_path, Guard([]))
        other.kill()
    assert "ptrace of a process that is none of the job's" in told


@pytest.mark.parametrize("fenced", [True, False])
def test_a_root_is_removed_moved_and_made_again(tmp_path: Path, fenced: bool) -> None:
    """A fresh start of many scripts, of a target as well as of a command. A link in a root's place would widen what is theirs."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "precious").mkdir()

    def program() -> None:
        shutil.rmtree(root)
        os.makedirs(root)
        (root / "b").write_text("1")
        os.chmod(root, 0o755)
        os.utime(root, (1, 1))
        os.symlink(tmp_path / "precious", root / "link")
        shutil.rmtree(root)
        refused(lambda: os.symlink(tmp_path / "precious", root))
        os.mkdir(root)
        (root / "c").write_text("1")

    tree = launch(program, roots=[Root("t", str(root))], guard=Guard([]) if fenced else None, low_descriptors=fenced)
    serve(tree)
    assert tree.status == 0
    assert os.listdir(root) == ["c"]
    assert [it for it in tree.ops if it.endswith("t:.") and it.startswith(("rmdir", "mkdir"))] == [
        "rmdir t:.",
        "mkdir t:.",
    ] * 2
