"""A measuring rank's instruments tell exactly what this process, and what it has started, did."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from chaosckpt.engine.rank.instruments import RankInstruments, latency, seccomp, tier_size


def test_writes_are_counted_to_the_byte(tmp_path: Path):
    """Three calls that write 5000 bytes are that, and nothing else is counted between two looks."""
    instruments = RankInstruments({})
    with open(tmp_path / "file", "wb", buffering=0) as file:
        before = instruments.counters()
        for part in (1000, 1500, 2500):
            file.write(bytes(part))
        found = instruments.counters() - before
    assert (found.write_chars, found.write_operations) == (5000, 3)


def test_children_count(tmp_path: Path):
    """What a child writes is counted while it lives, and still when it has ended and was waited for."""
    code = f"import sys; open({str(tmp_path / 'file')!r}, 'wb', 0).write(bytes(70000)); print(flush=True); sys.stdin.read()"
    instruments = RankInstruments({})
    before = instruments.counters()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = instruments.counters() - before
    assert alive.write_chars >= 70000
    assert (instruments.counters() - before).write_chars >= 70000


def test_memory_has_a_peak_of_its_own():
    """Memory that was taken and given back shows in the peak, and not any more after the next reset."""
    instruments = RankInstruments({})
    instruments.reset_peak()
    before = instruments.resident_bytes()
    taken = bytearray(os.urandom(1)) * 64_000_000
    assert instruments.peak_bytes() >= before + 60_000_000
    del taken
    if instruments.peaks_reset:
        instruments.reset_peak()
        assert instruments.peak_bytes() < before + 60_000_000


def test_a_tier_is_as_large_as_its_files(tmp_path: Path):
    """Apparent and allocated sizes differ for a file with a hole, and two names of one file are one file."""
    (tmp_path / "sub").mkdir()
    with open(tmp_path / "sub" / "hole", "wb") as file:
        file.truncate(1 << 20)
    (tmp_path / "data").write_bytes(b"x" * 5000)
    os.link(tmp_path / "data", tmp_path / "again")
    found = tier_size("shared", str(tmp_path))
    assert (found.tier, found.files, found.apparent_bytes) == ("shared", 2, (1 << 20) + 5000)
    blocks = sum(path.stat().st_blocks * 512 for path in (tmp_path / "data", tmp_path / "sub" / "hole"))
    assert found.allocated_bytes == blocks < 1 << 20


def test_a_tier_that_is_not_there_is_empty(tmp_path: Path):
    """As node-local storage after a loss."""
    assert tier_size("local", str(tmp_path / "nowhere")).files == 0


def test_latency_is_by_the_given_clock_and_leaves_nothing(tmp_path: Path):
    """With a clock that counts its calls each operation takes exactly one; the directory is empty afterwards."""
    ticks = count()
    found = latency("shared", str(tmp_path), "rank-0", lambda: float(next(ticks)), repeats=3)
    assert found.write_seconds == found.fsync_seconds == found.rename_seconds == found.stat_seconds == (1.0,) * 3
    assert list(tmp_path.iterdir()) == []


def test_filters_are_read_from_the_kernel():
    """A child that puts itself under a filter shows one more than this process."""
    code = (
        "import ctypes, sys; libc = ctypes.CDLL(None)\n"
        "from chaosckpt.engine.rank.instruments import seccomp\n"
        "short, byte = ctypes.c_ushort, ctypes.c_ubyte\n"
        "class I(ctypes.Structure): _fields_ = [('c', short), ('t', byte), ('f', byte), ('k', ctypes.c_uint)]\n"
        "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.POINTER(I))]\n"
        "libc.prctl(38, 1, 0, 0, 0)\n"
        "assert libc.prctl(22, 2, ctypes.byref(P(1, (I * 1)(I(6, 0, 0, 0x7FFF0000)))), 0, 0) == 0\n"
        "found = seccomp(); print(found.mode, found.filters)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", str(seccomp().filters + 1)]
