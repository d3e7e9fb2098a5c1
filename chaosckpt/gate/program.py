"""The filter program: about which system calls, with which descriptor numbers, the supervisor is asked.

Pure: from numbers to the bytes of a classic BPF program (`struct sock_filter[]`). Untracked descriptors never leave the
filter, so that sockets, pipes and logs cost nothing.
"""

from __future__ import annotations

import errno
import struct

from chaosckpt.gate import syscalls as k

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_INSTRUCTION = struct.Struct("=HBBI")

ALWAYS = (
    "openat open creat openat2 rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat"
    " truncate chmod fchmodat fchmodat2 mknod mknodat stat lstat access faccessat faccessat2 readlink readlinkat sync umask"
    " fork vfork clone3 execve execveat exit_group io_uring_setup io_setup"
    " kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal"
    " chown lchown fchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr setxattrat removexattr"
    " lremovexattr fremovexattr removexattrat file_setattr mq_open mq_unlink ptrace process_vm_writev"
).split()
"""Calls by path, calls that change attributes, that make, signal, trace or end a process, and rings that would pass the gate by."""

BY_DESCRIPTOR: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("write writev pwrite64 pwritev pwritev2 read readv pread64 preadv preadv2".split(), (0,)),
    **dict.fromkeys("close fsync fdatasync ftruncate fallocate fchmod syncfs getdents getdents64 dup".split(), (0,)),
    **dict.fromkeys("dup2 dup3 sendfile".split(), (0, 1)),
    **dict.fromkeys("splice copy_file_range".split(), (0, 2)),
}
"""Calls that notify when one of these arguments is a number of the band."""


class _Assembler:
    """Instructions with labelled jumps, resolved to relative offsets at the end."""

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, str | None, str | None]] = []
        self.labels: dict[str, int] = {}

    def emit(self, code: int, operand: int, yes: str | None = None, no: str | None = None) -> None:
        self.instructions.append((code, operand, yes, no))

    def label(self, name: str) -> None:
        self.labels[name] = len(self.instructions)

    def argument(self, index: int) -> None:
        self.emit(_LOAD, 16 + 8 * index)

    def assemble(self) -> bytes:
        out = bytearray()
        for position, (code, operand, yes, no) in enumerate(self.instructions):
            jumps = [0 if to is None else self.labels[to] - position - 1 for to in (yes, no)]
            if not all(0 <= jump < 256 for jump in jumps):
                raise AssertionError(f"a jump of instruction {position} leaves the range of 8 bits: {jumps}")
            out += _INSTRUCTION.pack(code, jumps[0], jumps[1], operand)
        return bytes(out)


NETWORK = ("connect", "sendto")
"""Calls that name an address."""


def build_program(
    base: int, limit: int, *, low_descriptors: bool = False, network: bool = False, machine: str = k.MACHINE
) -> bytes:
    """The filter for tracked descriptors in [base, limit), as packed `struct sock_filter` of 8 bytes each.

    With `low_descriptors` every descriptor call notifies, whatever its number: slower, but redirections of a shell (a
    tracked file at number 1) are seen. With `network`, calls that name a peer notify, too.
    """
    numbers = k.TABLES[machine]
    code = _Assembler()
    code.emit(_LOAD, 4)
    code.emit(_EQUAL, k.AUDIT_ARCHITECTURES[machine], None, "allow")
    code.emit(_LOAD, 0)
    groups: dict[tuple[int, ...], str] = {}
    for name, arguments in BY_DESCRIPTOR.items():
        if name in numbers:
            label = "notify" if low_descriptors else groups.setdefault(arguments, "band" + "".join(map(str, arguments)))
            code.emit(_EQUAL, numbers[name], label)
    for name in ("fcntl", "newfstatat", "statx", "mmap", "clone", "close_range", "ioctl"):
        code.emit(_EQUAL, numbers[name], name)
    always = [name for name in (*(NETWORK if network else ()), *ALWAYS) if name in numbers]
    for name in always:
        code.emit(_EQUAL, numbers[name], "notify", "allow" if name == always[-1] else None)
    for arguments, label in groups.items():
        code.label(label)
        for index in arguments:
            _band(code, index, base, limit, "notify", None)
        code.emit(_AT_LEAST, 0, "allow")
    _special_calls(code, base, limit, low_descriptors)
    code.label("unsupported")
    code.emit(_RETURN, k.RETURN_ERRNO | errno.EOPNOTSUPP)
    code.label("notify")
    code.emit(_RETURN, k.RETURN_NOTIFY)
    code.label("allow")
    code.emit(_RETURN, k.RETURN_ALLOW)
    return code.assemble()


def _band(code: _Assembler, index: int, base: int, limit: int, inside: str | None, outside: str | None) -> None:
    """Go to `inside` when argument `index` is in the band, else to `outside`; None falls through."""
    beyond = f"beyond{len(code.instructions)}"
    code.argument(index)
    code.emit(_AT_LEAST, base, None, outside or beyond)
    code.emit(_AT_LEAST, limit, outside or beyond, inside)
    code.label(beyond)


def _special_calls(code: _Assembler, base: int, limit: int, low_descriptors: bool) -> None:
    """Calls that take more than one comparison to judge."""
    code.label("fcntl")  # Only duplicates matter: of a number in the band, or to one.
    code.argument(1)
    code.emit(_EQUAL, k.F_DUPFD, "duplicate")
    code.emit(_EQUAL, k.F_DUPFD_CLOEXEC, "duplicate", "allow")
    code.label("duplicate")
    if low_descriptors:
        code.emit(_AT_LEAST, 0, "notify")
    _band(code, 0, base, limit, "notify", None)
    _band(code, 2, base, limit, "notify", "allow")
    code.label(
        "newfstatat"
    )  # With AT_EMPTY_PATH it is the C library's fstat: a question about a descriptor, not about storage.
    code.argument(3)
    code.emit(_ANY_BIT, k.AT_EMPTY_PATH, "allow", "notify")
    code.label("statx")
    code.argument(2)
    code.emit(_ANY_BIT, k.AT_EMPTY_PATH, "allow", "notify")
    code.label("mmap")
    if not low_descriptors:
        _band(code, 4, base, limit, None, "allow")
    code.argument(3)
    code.emit(_ANY_BIT, k.MAP_SHARED, None, "allow")
    code.argument(2)
    code.emit(_ANY_BIT, k.PROT_WRITE, "notify", "allow")
    code.label("clone")
    code.argument(0)
    code.emit(_ANY_BIT, k.CLONE_THREAD, "allow", "notify")
    code.label("close_range")
    if low_descriptors:
        code.emit(_AT_LEAST, 0, "notify")
    code.argument(1)
    code.emit(_AT_LEAST, base, None, "allow")
    code.argument(0)
    code.emit(_AT_LEAST, limit, "allow", "notify")
    code.label("ioctl")  # A clone would bring in data unseen; refused, cp and its like fall back to copy_file_range.
    code.argument(1)
    code.emit(_EQUAL, k.FS_IOC_SETFLAGS, "notify")
    code.emit(_EQUAL, k.FS_IOC_FSSETXATTR, "notify")
    code.emit(_EQUAL, k.FICLONE, "cloning")
    code.emit(_EQUAL, k.FICLONERANGE, "cloning")
    code.emit(_EQUAL, k.FIDEDUPERANGE, "cloning", "allow")
    code.label("cloning")
    if not low_descriptors:
        _band(code, 0, base, limit, None, "allow")
