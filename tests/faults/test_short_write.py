"""Writes that take fewer bytes than given."""

from __future__ import annotations

from chaosckpt.faults.short_write import ShortWrite
from chaosckpt.model.fault import Memory, Short
from tests.faults.operations import operation, trigger


def test_a_short_write_is_never_whole_nor_empty():
    """At least one byte is written, at most all but one, whatever was asked for; and only once."""
    fault, memory = ShortWrite(trigger(), length=100), Memory()
    assert fault.decide(operation(length=1), memory) is None
    assert fault.decide(operation(length=50), memory) == Short(49)
    assert fault.decide(operation(length=50), memory) is None
    assert ShortWrite(trigger(), length=7).decide(operation(length=50), Memory()) == Short(7)
