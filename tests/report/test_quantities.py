"""Seconds, bytes and ratios as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosckpt.report.quantities import bytes_text, digits, ratio_text, seconds_text, share_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2.5e-6, "2.5 µs"),
        (0.00085, "850 µs"),
        (0.0123456, "12.3 ms"),
        (0.99999, "1 s"),
        (45.61, "45.6 s"),
        (59.99, "1 min"),
        (60, "1 min"),
        (750, "12 min 30 s"),
        (3599.9, "1 h"),
        (12_000, "3 h 20 min"),
        (86_400, "24 h"),
        (187_200, "2 d 4 h"),
        (-90, "-1 min 30 s"),
    ],
)
def test_seconds(seconds, text):
    """Seconds read in the unit that fits, rounded into the next one where they reach it."""
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (999.9, "1 kB"),
        (1_500_000, "1.5 MB"),
        (64e6, "64 MB"),
        (123.4e9, "123 GB"),
        (2e12, "2 TB"),
    ],
)
def test_bytes(count, text):
    """Bytes read in powers of 1000."""
    assert bytes_text(count) == text


def test_ratios_and_shares():
    """Ratios and shares keep three digits."""
    assert (ratio_text(1.2549), share_text(0.03216), digits(1234.4)) == ("×1.25", "3.22 %", "1234")


@settings(deadline=None, database=None, derandomize=True)
@given(st.floats(1e-9, 1e12))
def test_no_number_reads_strangely(seconds):
    """No duration has an exponent or sixty of a smaller unit, as in `1 min 60 s`."""
    text = seconds_text(seconds)
    if 1e-6 < seconds < 1e9:
        assert re.fullmatch(r"\d+(\.\d+)? (µs|ms|s)|\d+ (min|h|d)( \d+ (s|min|h))?", text), text
    assert not re.search(r"(min|h) 60 ", text), text
