"""The guard: what may be changed outside the tracked roots, and which addresses belong to this machine."""

from __future__ import annotations

import os
import socket
import struct

import pytest

from chaosckpt.gate import Root
from chaosckpt.gate.fence.guard import MOST_REFUSALS, Guard
from chaosckpt.gate.fence.interfaces import own_addresses
from tests.gate.driver import launch, serve


def internet(host: str, port: int = 80) -> bytes:
    """An address as the kernel lays it out."""
    if ":" in host:
        return (
            struct.pack("=HHI", socket.AF_INET6, socket.htons(port), 0)
            + socket.inet_pton(socket.AF_INET6, host)
            + b"\0" * 4
        )
    return struct.pack("=HH", socket.AF_INET, socket.htons(port)) + socket.inet_aton(host) + b"\0" * 8


def test_only_what_is_writable_may_be_changed(tmp_path):
    """Below a writable place all may be changed, beside it nothing, not even what begins like it; a device may be opened."""
    (tmp_path / "cache").mkdir()
    guard = Guard([str(tmp_path / "cache")])
    place = os.fsencode(os.path.realpath(tmp_path))
    assert guard.allows(place + b"/cache/a/b")
    assert guard.allows(b"/dev/null", opening=True)
    for path in (
        b"/dev/null",
        b"/sys/a",
        b"/dev/shm/not-the-jobs",
        b"/proc/sys/a",
        place + b"/cached",
        place + b"/other",
        b"/etc/passwd",
        place,
    ):
        assert not guard.allows(path)


def test_a_writable_place_behind_a_link(tmp_path):
    """A writable directory named through a symbolic link is the directory that it leads to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    guard = Guard([str(tmp_path / "link")])
    assert guard.allows(os.fsencode(os.path.realpath(tmp_path)) + b"/real/a")


def test_allowing_everything():
    """Told so, it lets all through and notes nothing."""
    guard = Guard([], files=False, network=False)
    assert guard.allows(b"/etc/passwd")
    assert guard.reaches(internet("192.0.2.1"))
    assert guard.refused == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
def test_this_machine_is_reached(host):
    """Loopback, in either family, leaves no machine."""
    guard = Guard([])
    assert guard.reaches(internet(host))
    assert guard.refused == []


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"])
def test_other_machines_are_refused(host):
    """A connection that would leave the machine is refused, and named without the disguise of the other family."""
    guard = Guard([])
    assert not guard.reaches(internet(host))
    assert guard.refused == [f"connection to {host.removeprefix('::ffff:')}"]


def test_what_sends_nothing():
    """Sockets of this machine's own kinds, name lookups and what is no address at all are let through."""
    guard = Guard([])
    assert guard.reaches(struct.pack("=H", socket.AF_UNIX) + b"/run/x\0")
    assert guard.reaches(struct.pack("=H", socket.AF_UNSPEC) + b"\0" * 14)
    assert guard.reaches(internet("192.0.2.1", port=53))
    assert guard.reaches(b"")
    assert guard.reaches(internet("192.0.2.1")[:5])


def test_refusals_are_told_once_and_not_without_end():
    """Each refusal stands once, and a program that tries without end doesn't fill the journal."""
    guard = Guard([])
    for _ in range(3):
        guard.refuse(b"/etc/passwd", "unlink")
    assert guard.refused == ["unlink of /etc/passwd"]
    for number in range(2 * MOST_REFUSALS):
        guard.refuse(b"/etc/%d" % number, "unlink")
    assert len(guard.refused) == MOST_REFUSALS


def test_a_path_that_is_no_text():
    """A path with bytes that are no UTF-8 is told without failing."""
    guard = Guard([])
    guard.refuse(b"/x/\xff", "unlink")
    assert len(guard.refused) == 1


def test_every_interface_of_this_machine_is_reached():
    """Goal: Ray, NCCL and gloo bind eth0's address, whether the machine's name leads to it or not."""
    addresses = own_addresses()
    assert "127.0.0.1" in map(str, addresses)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            pass  # a machine without a route
        else:
            assert asking.getsockname()[0] in map(str, addresses)
    guard = Guard([])
    assert all(guard.reaches(internet(str(address))) for address in addresses)


def test_a_program_learns_its_own_address_and_sends_nothing(tmp_path):
    """Goal: the usual question, which address would be used, is answered; what is then sent by that socket is refused and told."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("198.51.100.7", 9))
        except OSError:
            pytest.skip("this machine has no route to other machines")
        own = asking.getsockname()[0]

    def program() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("198.51.100.7", 9))
            assert asking.getsockname()[0] == own
            with pytest.raises(OSError, match="unreachable"):
                asking.send(b"x")
        with socket.socket() as stream, pytest.raises(OSError, match="unreachable"):
            stream.connect(("198.51.100.8", 9))

    guard = Guard([])
    tree = launch(program, roots=[Root("t", str(tmp_path))], guard=guard)
    serve(tree)
    assert tree.status == 0
    assert guard.refused == ["connection to 198.51.100.7", "connection to 198.51.100.8"]
