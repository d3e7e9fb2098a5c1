"""How a thread waits, read from the line that /proc has of its system call (x86-64)."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys

import pytest

from chaosckpt.engine.node import sampling

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86-64")
STACK = "0x7ffc0 0x7f001"


@x86_64
@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("running", "running"),
        (f"202 0x1 0x189 0x0 0x0 0x0 0x0 {STACK}", "wait"),
        (f"202 0x1 0x189 0x0 0x7ffe8 0x0 0x0 {STACK}", "timed"),
        (f"230 0x1 0x1 0x7ffe8 0x0 0x0 0x0 {STACK}", "asleep"),
        (f"35 0x7ffe8 0x0 0x0 0x0 0x0 0x0 {STACK}", "asleep"),
        (f"23 0x0 0x0 0x0 0x0 0x7ffe8 0x0 {STACK}", "asleep"),
        (f"23 0x5 0x1 0x0 0x0 0x7ffe8 0x0 {STACK}", "timed"),
        (f"7 0x0 0x0 0x64 0x0 0x0 0x0 {STACK}", "asleep"),
        (f"7 0x7f00 0x1 0xffffffff 0x0 0x0 0x0 {STACK}", "wait"),
        (f"232 0x3 0x7f00 0x40 0xa 0x0 0x0 {STACK}", "polls"),
        (f"232 0x3 0x7f00 0x40 0xffffffff 0x0 0x0 {STACK}", "wait"),
        (f"232 0x3 0x7f00 0x40 0x2710 0x0 0x0 {STACK}", "timed"),
        (f"73 0x3 0x2 0x0 0x0 0x0 0x0 {STACK}", "wait"),
        (f"1 0x1 0x7f00 0x64 0x0 0x0 0x0 {STACK}", "busy"),
    ],
)
def test_how_a_call_waits(line: str, waits: str) -> None:
    """Goal: sleeps, waits with and without a timeout and calls that do something are told apart."""
    assert sampling.how_it_waits(line.encode().split()) == waits


def test_a_sleeping_process_is_seen_asleep_and_described() -> None:
    """Goal: what the kernel really shows of a sleep; the gate's own hold makes a wait of any call."""
    sleeping = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"], stdout=subprocess.PIPE
    )
    try:
        assert sleeping.stdout is not None
        sleeping.stdout.readline()
        while (row := sampling.seen(sleeping.pid, set())[0]).waits in ("running", "busy"):
            os.sched_yield()
        assert (row.tid, row.waits) == (sleeping.pid, "asleep")
        assert row.place
        assert [held.waits for held in sampling.seen(sleeping.pid, {sleeping.pid})] == ["wait"]
        assert "nanosleep" in sampling.describe(sleeping.pid)
    finally:
        sleeping.kill()
        sleeping.communicate()
    assert sampling.seen(sleeping.pid, set()) == []


def test_what_a_process_tells_itself_is_no_progress() -> None:
    """Goal: a rank that asks its own store for the others moves bytes without end; between two processes they count."""
    counters = sampling.SocketCounters()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as peer,
    ):
        client.send(b"x")
        own, other = ({os.fstat(end.fileno()).st_ino} for end in (client, peer))
        assert counters.of([own | other]) == []
        assert [row[0] for row in counters.of([own, other])] == sorted(own | other)
    assert counters.of([]) == []
    counters.close()
