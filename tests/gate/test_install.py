"""Tests of the band's place, and of real installations under small limits."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from chaosckpt.gate import Root
from chaosckpt.gate.install import choose_band, install
from tests.gate.driver import fails, run


@pytest.mark.parametrize("hard", [256, 1024, 4096, 20000, 1 << 20, resource.RLIM_INFINITY])
def test_the_band_fits_under_any_limit(hard: int) -> None:
    """At most half of the limit and 2048 numbers, and below the limit."""
    base, limit = choose_band(hard)
    assert 0 < limit - base <= min(2048, limit / 2)
    assert hard == resource.RLIM_INFINITY or limit <= hard


@pytest.mark.parametrize("limit", [256, 1024, 4096])
def test_files_are_tracked_under_a_small_hard_limit(tmp_path: Path, limit: int) -> None:
    """The soft limit is raised where needed, and the descriptor lies in the band."""

    def program() -> None:
        number = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        base, top = choose_band(limit)
        assert base <= number < top
        os.write(number, b"x")

    tree = run(program, roots=[Root("t", str(tmp_path))], limit=limit)
    assert tree.status == 0
    assert tree.ops == ["open_write t:f", "write t:f", "close t:f"]


def test_the_band_ends_with_emfile(tmp_path: Path) -> None:
    """A program that opens more than the band holds gets the kernel's own error."""

    def program() -> None:
        inherited = sum(int(number) >= 128 for number in os.listdir("/proc/self/fd"))
        for _ in range(128 - inherited):
            os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        fails(24, os.open, tmp_path / "f", os.O_WRONLY)

    assert run(program, roots=[Root("t", str(tmp_path))], limit=256).status == 0


def test_a_lowered_soft_limit_does_not_matter(tmp_path: Path) -> None:
    """A program that lowers its soft limit below the band still gets its files."""

    def program() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1024))
        (tmp_path / "f").write_bytes(b"x")

    tree = run(program, roots=[Root("t", str(tmp_path))], limit=1024)
    assert tree.status == 0
    assert "write t:f" in tree.ops


def test_a_lowered_hard_limit_is_said(tmp_path: Path) -> None:
    """With no number of the band allowed any more, opens fail with EMFILE and the trace says why."""

    def program() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        fails(24, os.open, tmp_path / "f", os.O_WRONLY | os.O_CREAT)

    tree = run(program, roots=[Root("t", str(tmp_path))], limit=1024)
    assert tree.status == 0 or os.geteuid() == 0
    assert tree.status != 0 or any("hard limit" in sentence for sentence in tree.gate.untraced)


def test_one_gate_a_tree() -> None:
    """A second installation in the same tree is refused by the kernel, as an OSError with its number."""

    def program() -> None:
        fails(16, install)

    assert run(program, roots=[]).status == 0
