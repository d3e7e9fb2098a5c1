"""What people write for sizes, durations, counts and rates is read as they mean it, or refused with the value."""

from __future__ import annotations

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.report import quantities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64MB", 64_000_000),
        ("1.5GiB", 1_610_612_736),
        ("500 kb", 500_000),
        ("7B", 7),
        ("2PB", 2 * 10**15),
        ("1MiB", 1 << 20),
    ],
)
def test_sizes(text, expected):
    """A number and a unit, in either case, of 1000 or of 1024."""
    assert quantities.size_bytes(text, "--size") == expected


@pytest.mark.parametrize(
    "text", ["", "64", "MB", "64 parsecs", "-1MB", "1e3MB", "0B", "nanMB", "64MB1", "1..5MB", "9" * 400 + "MB"]
)
def test_no_size(text):
    """Anything else is refused, with what was written and what may be."""
    with pytest.raises(UsageError, match=r"--size .* is no size; write a number with a unit"):
        quantities.size_bytes(text, "--size")


def test_several():
    """Lists are sorted, and nothing is measured twice."""
    assert quantities.sizes("64MB,1MB,64MB", "--size") == (1_000_000, 64_000_000)
    assert quantities.counts("4,1,2,2", "--ranks") == (1, 2, 4)


@pytest.mark.parametrize("text", ["0", "1,,2", "two", "1.5", "-1", "", "²", "9" * 5000])
def test_no_counts(text):
    """Ranks are whole numbers from 1 on."""
    with pytest.raises(UsageError, match=r"--ranks .* must be whole numbers"):
        quantities.counts(text, "--ranks")


@pytest.mark.parametrize(
    ("text", "expected"), [("24h", 86400.0), ("90min", 5400.0), ("250ms", 0.25), ("2 d", 172800.0)]
)
def test_durations(text, expected):
    """A number and a unit."""
    assert quantities.seconds(text, "--mtbf") == expected


@pytest.mark.parametrize("text", ["24", "0h", "-3h", "soon", "1 fortnight", "infh"])
def test_no_duration(text):
    """Anything else is refused."""
    with pytest.raises(UsageError, match=r"--mtbf .* is no duration"):
        quantities.seconds(text, "--mtbf")


def test_a_counted_failure_rate():
    """A number of failures, and the time they were counted in."""
    assert quantities.failures("7/30d", "--failures") == (7, 30 * 86400.0)


@pytest.mark.parametrize("text", ["7", "/30d", "7/", "x/30d", "-1/30d"])
def test_no_failure_rate(text):
    """Anything else is refused."""
    with pytest.raises(UsageError, match=r"--failures"):
        quantities.failures(text, "--failures")


@pytest.mark.parametrize("count", ["1000001", "9" * 400, "9" * 5000])
def test_too_many_failures(count):
    """So many need no bounds, which would take minutes to work out: they are refused, with the way to say it."""
    with pytest.raises(UsageError, match=r"has more than 1000000 failures, .* name it by --mtbf"):
        quantities.failures(f"{count}/30d", "--failures")
