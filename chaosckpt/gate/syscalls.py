"""The kernel's numbers: system calls, seccomp constants and structures, for x86-64 and aarch64 Linux.

Sources: `linux/seccomp.h`, `linux/filter.h`, `linux/audit.h`, and the system call tables of the two architectures.
"""

from __future__ import annotations

import platform
import struct

_COMMON = dict(
    pidfd_send_signal=424, io_uring_setup=425, pidfd_open=434, clone3=435,
    close_range=436, openat2=437, pidfd_getfd=438, faccessat2=439, fchmodat2=452,
    setxattrat=463, removexattrat=466, file_setattr=469
)  # fmt: skip

_X86_64 = dict(
    read=0, write=1, open=2, close=3, stat=4, lstat=6, mmap=9, ioctl=16, pread64=17, pwrite64=18, readv=19, writev=20,
    access=21, dup=32, dup2=33, sendfile=40, connect=42, sendto=44, clone=56,
    fork=57, vfork=58, execve=59, fcntl=72, fsync=74, fdatasync=75, truncate=76, ftruncate=77, getdents=78, rename=82,
    kill=62, rt_sigqueueinfo=129, tkill=200, tgkill=234, rt_tgsigqueueinfo=297,
    chown=92, fchown=93, lchown=94, ptrace=101, utime=132, setxattr=188, lsetxattr=189, fsetxattr=190, removexattr=197,
    lremovexattr=198, fremovexattr=199, utimes=235, mq_open=240, mq_unlink=241, fchownat=260, futimesat=261, utimensat=280,
    process_vm_writev=311,
    mkdir=83, rmdir=84, creat=85, link=86, unlink=87, symlink=88,
    readlink=89, chmod=90, fchmod=91, umask=95, mknod=133, sync=162, io_setup=206, getdents64=217, exit_group=231,
    openat=257, mkdirat=258, mknodat=259, newfstatat=262, unlinkat=263, renameat=264, linkat=265, symlinkat=266,
    readlinkat=267, fchmodat=268, faccessat=269, splice=275, fallocate=285, dup3=292, preadv=295, pwritev=296, syncfs=306,
    kcmp=312, renameat2=316, seccomp=317, execveat=322, copy_file_range=326, preadv2=327, pwritev2=328, statx=332,
)  # fmt: skip

_AARCH64 = dict(
    io_setup=0, dup=23, dup3=24, fcntl=25, ioctl=29, mknodat=33, mkdirat=34, unlinkat=35, symlinkat=36, linkat=37,
    renameat=38, truncate=45, ftruncate=46, fallocate=47, faccessat=48, fchmod=52, fchmodat=53, openat=56, close=57,
    getdents64=61, read=63, write=64, readv=65, writev=66, pread64=67, pwrite64=68, preadv=69, pwritev=70, sendfile=71,
    setxattr=5, lsetxattr=6, fsetxattr=7, removexattr=14, lremovexattr=15, fremovexattr=16, fchownat=54, fchown=55,
    utimensat=88, ptrace=117, mq_open=180, mq_unlink=181, process_vm_writev=271,
    kill=129, tkill=130, tgkill=131, rt_sigqueueinfo=138, rt_tgsigqueueinfo=240,
    splice=76, readlinkat=78, newfstatat=79, sync=81, fsync=82, fdatasync=83, exit_group=94, umask=166, clone=220,
    execve=221, mmap=222, connect=203, sendto=206, syncfs=267, kcmp=272, renameat2=276, seccomp=277, execveat=281,
    copy_file_range=285, preadv2=286, pwritev2=287, statx=291,
)  # fmt: skip

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
TABLES = {"x86_64": {**_X86_64, **_COMMON}, "aarch64": {**_AARCH64, **_COMMON}}

MACHINE = platform.machine()
NUMBERS: dict[str, int] = TABLES.get(MACHINE, {})
"""System call name -> number on this machine; empty where the gate doesn't know the architecture."""

_NAMES_BY_ARITY = (
    "fork vfork sync",
    "close dup fsync fdatasync syncfs rmdir unlink umask exit_group mq_unlink",
    "creat stat lstat access dup2 ftruncate truncate rename mkdir link symlink chmod fchmod clone3 io_uring_setup io_setup connect"
    " kill tkill utime utimes removexattr lremovexattr fremovexattr",
    "open read write readv writev fcntl dup3 mknod mkdirat unlinkat symlinkat fchmodat faccessat getdents getdents64"
    " close_range execve readlink tgkill rt_sigqueueinfo chown lchown fchown futimesat ioctl",
    "openat openat2 pread64 pwrite64 preadv pwritev sendfile fallocate mknodat newfstatat renameat readlinkat faccessat2"
    " fchmodat2 rt_tgsigqueueinfo pidfd_send_signal utimensat ptrace mq_open removexattrat",
    "linkat renameat2 statx clone execveat fchownat setxattr lsetxattr fsetxattr file_setattr",
    "mmap splice copy_file_range preadv2 pwritev2 sendto process_vm_writev setxattrat",
)
ARITIES = {
    NUMBERS[name]: count for count, names in enumerate(_NAMES_BY_ARITY) for name in names.split() if name in NUMBERS
}
"""System call number -> number of its arguments: what lies in the other registers means nothing."""

# seccomp(2) and seccomp_unotify(2)
PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER = 1
FILTER_NEW_LISTENER = 8
FILTER_WAIT_KILLABLE_RECV = 32
RETURN_ALLOW = 0x7FFF0000
RETURN_NOTIFY = 0x7FC00000
RETURN_ERRNO = 0x00050000
NOTIFY_RECEIVE = 0xC0502100
NOTIFY_SEND = 0xC0182101
NOTIFY_ID_VALID = 0x40082102
NOTIFY_ADD_DESCRIPTOR = 0x40182103
NOTIFY_SET_FLAGS = 0x40082104
SYNCHRONOUS_WAKE_UP = 1
ANSWER_CONTINUE = 1
ADD_AT_NUMBER = 1
ADD_AND_ANSWER = 2

NOTIFICATION = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, thread, flags, call number, architecture, instruction pointer, six arguments."""
ANSWER = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, value, -errno, flags."""
ADDED_DESCRIPTOR = struct.Struct("=QIIII")
"""struct seccomp_notif_addfd: id, flags, source descriptor, new number, new descriptor's flags."""

# Arguments of single calls
AT_FDCWD = 0xFFFFFF9C
AT_SYMLINK_NOFOLLOW = 0x100
AT_REMOVEDIR = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000
CLONE_THREAD = 0x10000
CLOSE_RANGE_CLOEXEC = 4
F_DUPFD = 0
KEEP_SIZE = 1
PUNCH_HOLE = 2
F_DUPFD_CLOEXEC = 1030
FS_IOC_SETFLAGS = 0x40086602
FS_IOC_FSSETXATTR = 0x401C5820
PTRACE_TRACEME = 0
FICLONE = 0x40049409
FICLONERANGE = 0x4020940D
FIDEDUPERANGE = 0xC0189436
KCMP_FILE = 0
KCMP_FILES = 2
MAP_SHARED = 1
PROT_WRITE = 2
RENAME_EXCHANGE = 2
RWF_APPEND = 0x10
LARGEST_TRANSFER = 0x7FFFF000
"""MAX_RW_COUNT: no single call moves more bytes."""
