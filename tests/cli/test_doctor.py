"""`doctor`: what works here, each need tried, and how to fix what doesn't."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.cli import machine as checks
from chaosckpt.cli.doctor import text
from chaosckpt.cli.machine import Check
from chaosckpt.engine.node import network
from chaosckpt.gate.support import probe


def test_this_machine(run):
    """Every check has a finding, what isn't there has a remedy, and the exit code says whether something is missing."""
    result = run("doctor", "--json")
    found = msgspec.json.decode(result.out)
    names = [check["name"] for check in found["checks"]]
    assert names == [
        "python",
        "kernel",
        "gate",
        "ptrace",
        "networks",
        "open files",
        "processes",
        "shared memory",
        "temporary space",
        "torch",
        "ray",
    ]
    assert all(check["found"] for check in found["checks"])
    assert all(check["remedy"] for check in found["checks"] if check["state"] == "missing")
    assert result.code == (0 if found["healthy"] else 3)


def test_the_gate_is_really_tried():
    """The probe's child makes a call under the gate, and sees the answer that was made up for it."""
    found = probe()
    assert found.works or found.problem
    assert found.works == (checks.gate().state != "missing")


@pytest.mark.parametrize(
    ("release", "state"),
    [
        ("6.1.0-13-amd64", "ok"),
        ("5.19.0", "ok"),
        ("5.15.0-91-generic", "limited"),
        ("5.4.0", "missing"),
        ("4.18", "missing"),
    ],
)
def test_kernels(monkeypatch, release, state):
    """5.19 and newer in full, 5.14 to 5.18 with a remark, older ones not."""
    monkeypatch.setattr("platform.release", lambda: release)
    check = checks.kernel()
    assert check.state == state
    assert bool(check.remedy) == (state != "ok")


def test_without_networks_of_their_own_commands_have_one_worker(monkeypatch):
    """It works with less, and the remedy says what to allow."""
    monkeypatch.setattr(network, "problem", lambda: "a network namespace is refused (Operation not permitted)")
    check = checks.networks()
    assert (check.state, "max_user_namespaces" in check.remedy) == ("limited", True)


def test_too_little_room_has_a_remedy(monkeypatch):
    """A full or missing file system is told with the way out."""
    monkeypatch.setattr(checks, "SPACE_MB", 1 << 40)
    check = checks.temporary_space()
    assert (check.state, check.remedy) == ("limited", "free some space, or set TMPDIR to another directory")


@pytest.mark.parametrize(("soft", "state"), [(60, "missing"), (600, "limited"), (100_000, "ok"), (-1, "ok")])
def test_a_low_limit_of_processes_has_a_remedy(monkeypatch, soft, state):
    """What is left counts: the processes and threads that this user has already are within the limit."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("resource.getrlimit", lambda which: (soft, 100_000 if soft > 0 else -1))
    monkeypatch.setattr(checks, "_threads_of_this_user", lambda: 50)
    check = checks.processes()
    assert check.state == state
    assert bool(check.remedy) == (state != "ok")
    assert state == "ok" or f"limit {soft}" in check.found


def test_text_ends_with_what_is_missing():
    """The last line names what is missing; a remedy stands below its check."""
    missing = Check(name="gate", state="missing", found="EPERM", remedy="allow it")
    lines = text((Check(name="python", state="ok", found="3.11"), missing)).plain.splitlines()
    assert lines[1].split() == ["MISSING", "gate", "EPERM"]
    assert lines[2].strip() == "→ allow it"
    assert lines[-1] == "missing: gate"
