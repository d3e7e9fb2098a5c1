"""Networks of their own: every port for each, this machine's addresses in all, and nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chaosckpt.engine.node import network

PORT = 29500
NOBODY = 65534
PR_SET_DUMPABLE = 4
ENTERED = f"""
import os, socket, sys
from chaosckpt.engine.node import network
before, ids = set(network._own_addresses()), (os.getresuid(), os.getresgid())
own = network._towards(socket.AF_INET)
network.enter()
assert (os.getresuid(), os.getresgid()) == ids
assert {{one.address for one in before}} <= {{one.address for one in network._own_addresses()}}
assert network._towards(socket.AF_INET) == own
for host in ["127.0.0.1"] + [socket.inet_ntop(one.family, one.address) for one in before if one.family == socket.AF_INET]:
    with socket.socket() as listener, socket.socket() as client:
        listener.bind((host, {PORT}))
        listener.listen(1)
        client.connect(listener.getsockname())
"""
HOLDS = (
    ENTERED
    + f"""
holder = socket.socket()
holder.bind(("127.0.0.1", {PORT}))
print("holds", flush=True)
sys.stdin.read()
"""
)
UNPRIVILEGED = f"""
import ctypes, os, socket
from chaosckpt.engine.node import network
os.chdir("/")
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(*[{NOBODY}] * 3)
    os.setresuid(*[{NOBODY}] * 3)
    ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 1, 0, 0, 0)  # what changed its user is closed to itself, too; a fresh exec would be open
{ENTERED}
held = next(line for line in open("/proc/self/status") if line.startswith("CapEff"))
assert int(held.split()[1], 16) == 0, held
"""

pytestmark = pytest.mark.skipif(bool(network.problem()), reason=network.problem())


def script(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_two_hold_one_port_at_the_same_time() -> None:
    """Goal: what each binds to its loopback or to the machine's addresses is there for itself alone; ids stay as they were."""
    both = [script(HOLDS), script(HOLDS)]
    said = [process.stdout.readline() for process in both if process.stdout is not None]
    ends = [process.communicate()[0] for process in both]
    assert said == ["holds\n"] * 2, ends


def test_an_ordinary_user_has_one_without_any_capability() -> None:
    """Goal: a user namespace is made where it has to be, and what it would permit beyond is given up."""
    process = script(UNPRIVILEGED)
    assert (process.communicate()[0], process.returncode) == ("", 0)
