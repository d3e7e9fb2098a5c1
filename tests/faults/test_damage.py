"""Damage at rest: bits that turn over, ends that are gone."""

from __future__ import annotations

import pytest

from chaosckpt.faults.bit_flip import BitFlip
from chaosckpt.faults.truncation import EVERYTHING, Truncation

FILE = "shared:step_4/__0_0.distcp"


@pytest.mark.parametrize(
    ("fault", "act"),
    [
        (BitFlip(FILE, 7, 3), "mutate shared of None: FlipBit"),
        (BitFlip("local:a", node=1), "mutate local of 1: FlipBit"),
        (Truncation(FILE, 5), "mutate shared of None: CutOff"),
    ],
)
def test_it_strikes_one_file_between_two_attempts(job, fault, act):
    """What was done is the evidence; with the file gone there is none. Nobody draws it unless it is asked for."""
    assert fault.between
    assert fault.weight == 0
    assert fault.prepare(job) == "what was done"
    assert job.acts == [act]
    job.files = 0
    assert fault.prepare(job) is None


def test_shrinking_makes_it_plain():
    """The lowest bit; an empty file."""
    assert [simpler.bit for simpler in BitFlip(FILE, 7, 3).simpler()] == [0]
    assert [simpler.missing_bytes for simpler in Truncation(FILE, 5).simpler()] == [EVERYTHING]
    assert list(Truncation(FILE, EVERYTHING).simpler()) == []


@pytest.mark.parametrize("wrong", [{"bit": 8}, {"offset": -1}])
def test_there_are_eight_bits_in_a_byte(wrong):
    """A bit that isn't there can't be turned over."""
    with pytest.raises(ValueError, match="between 0 and 7"):
        BitFlip(FILE, **wrong)
