"""Errors that one operation gives."""

from __future__ import annotations

import errno

import pytest

from chaosckpt.faults.errno import StorageError
from chaosckpt.model.fault import Errno, Memory
from tests.faults.operations import operation, trigger

EIO = Errno(errno.EIO)


def test_an_error_strikes_its_operation_only():
    """Other operations pass, and nothing is evidence before the error was given."""
    fault, memory = StorageError(trigger(nth=2)), Memory()
    assert fault.decide(operation(nth=1), memory) is None
    assert not memory.took_effect
    assert fault.decide(operation(nth=2), memory) == EIO
    assert memory.took_effect


def test_eio_sticks_to_the_content_of_its_file():
    """After a bad block every read, write, fsync and close of that file fails; another file doesn't."""
    fault, memory = StorageError(trigger()), Memory()
    fault.decide(operation(), memory)
    for op in ("write", "fsync", "close", "open_read", "read"):
        assert fault.decide(operation(op, nth=7), memory) == EIO
    assert fault.decide(operation("write", "shared:step_4/__0_0.distcp"), memory) is None
    assert fault.decide(operation("stat"), memory) is None


def test_eio_follows_its_file_through_rename_and_ends_with_it():
    """The bad block goes where the file goes; unlinked, it is gone."""
    fault, memory = StorageError(trigger()), Memory()
    fault.decide(operation(), memory)
    assert fault.decide(operation("rename", destination="shared:final"), memory) is None
    assert fault.decide(operation("read", "shared:final"), memory) == EIO
    assert fault.decide(operation("unlink", "shared:final"), memory) is None
    assert fault.decide(operation("write", "shared:final"), memory) is None


def test_other_errors_are_given_once():
    """EEXIST is what a race gives: the next call is another story."""
    fault, memory = StorageError(trigger("mkdir"), "EEXIST"), Memory()
    assert fault.decide(operation("mkdir"), memory) == Errno(errno.EEXIST)
    assert fault.decide(operation("mkdir"), memory) is None


def test_only_errors_that_a_call_can_give():
    """A write never gives EEXIST or ENOENT; an unknown name is refused in words."""
    assert not StorageError(trigger("mkdir"), "EEXIST").accepts("write")
    assert StorageError(trigger(), "EIO").accepts("write")
    with pytest.raises(ValueError, match="'ENOENT' is none of"):
        StorageError(trigger(), "ENOENT")
