"""Tests of the filter program, run by a small interpreter of classic BPF: both architectures, without a kernel."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.program import build_program

BASE, LIMIT = 600, 900
NOTIFY, ALLOW = "notify", "allow"


def decide(program: bytes, machine: str, name: str, *arguments: int, arch: int | None = None) -> str:
    """What the program returns for this call."""
    call = struct.pack(
        "=iIQ6Q",
        k.TABLES[machine][name],
        k.AUDIT_ARCHITECTURES[machine] if arch is None else arch,
        0,
        *(argument % 2**64 for argument in arguments),
        *[0] * (6 - len(arguments)),
    )
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, yes, no, operand = instructions[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", call, operand)
        elif code == 0x06:
            return {k.RETURN_NOTIFY: NOTIFY, k.RETURN_ALLOW: ALLOW}.get(operand) or errno.errorcode[operand & 0xFFFF]
        else:
            taken = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: accumulator & operand}[code]
            at += yes if taken else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_descriptor_calls_notify_for_the_band_only(machine: str) -> None:
    """Sockets, pipes and logs cost nothing: a write below the band, or beyond it, never leaves the filter."""
    program = build_program(BASE, LIMIT, machine=machine)
    for name in ("write", "read", "close", "fsync", "pwritev2", "getdents64", "fchmod"):
        assert [decide(program, machine, name, number) for number in (0, 599, 600, 899, 900, -1)] == [
            ALLOW, ALLOW, NOTIFY, NOTIFY, ALLOW, ALLOW,
        ]  # fmt: skip


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_copies_and_duplicates_look_at_both_ends(machine: str) -> None:
    """A tracked file as input or as output of a copy, as source or as target of a duplicate."""
    program = build_program(BASE, LIMIT, machine=machine)
    assert decide(program, machine, "sendfile", 5, 700) == NOTIFY
    assert decide(program, machine, "sendfile", 700, 5) == NOTIFY
    assert decide(program, machine, "sendfile", 5, 6) == ALLOW
    assert decide(program, machine, "splice", 5, 0, 700) == NOTIFY
    assert decide(program, machine, "copy_file_range", 700, 0, 5) == NOTIFY
    assert decide(program, machine, "dup3", 1, 700) == NOTIFY
    assert decide(program, machine, "fcntl", 1, k.F_DUPFD_CLOEXEC, 650) == NOTIFY
    assert decide(program, machine, "fcntl", 700, k.F_DUPFD, 0) == NOTIFY
    assert decide(program, machine, "fcntl", 700, 3, 0) == ALLOW
    assert decide(program, machine, "close_range", 3, 0xFFFFFFFF) == NOTIFY
    assert decide(program, machine, "close_range", 3, 20) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_judged_by_their_flags(machine: str) -> None:
    """Threads, fstat and private mappings pass; forks, questions by name and writable shared mappings ask."""
    program = build_program(BASE, LIMIT, machine=machine)
    assert decide(program, machine, "clone", k.CLONE_THREAD | 0xF00) == ALLOW
    assert decide(program, machine, "clone", 17) == NOTIFY
    assert decide(program, machine, "newfstatat", 5, 0, 0, k.AT_EMPTY_PATH) == ALLOW
    assert decide(program, machine, "newfstatat", 5, 0, 0, 0) == NOTIFY
    assert decide(program, machine, "mmap", 0, 0, 3, 1, 700) == NOTIFY
    assert decide(program, machine, "mmap", 0, 0, 3, 2, 700) == ALLOW
    assert decide(program, machine, "mmap", 0, 0, 1, 1, 700) == ALLOW
    assert decide(program, machine, "mmap", 0, 0, 3, 0x21, -1) == ALLOW
    assert decide(program, machine, "ioctl", 700, k.FICLONE) == "ENOTSUP"
    assert decide(program, machine, "ioctl", 700, 0x5401) == ALLOW
    assert decide(program, machine, "openat", 0, 0, os.O_RDONLY) == NOTIFY


def test_low_descriptors_are_seen_on_request() -> None:
    """For shell scripts: every descriptor's calls notify."""
    program = build_program(BASE, LIMIT, low_descriptors=True, machine="x86_64")
    assert decide(program, "x86_64", "write", 1) == NOTIFY
    assert decide(program, "x86_64", "dup2", 5, 1) == NOTIFY
    assert decide(program, "x86_64", "fcntl", 1, k.F_DUPFD, 10) == NOTIFY
    assert decide(program, "x86_64", "close_range", 3, 20) == NOTIFY


def test_another_architecture_passes() -> None:
    """Numbers mean other calls there: 32-bit programs are not traced, rather than traced wrongly."""
    assert decide(build_program(BASE, LIMIT, machine="x86_64"), "x86_64", "write", 700, arch=0x40000003) == ALLOW
