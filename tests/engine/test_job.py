"""A rank's log lies on storage that may be full: what ended the rank is reported all the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from chaosckpt.engine.rank.job import JobProgram, exit_code_of


class Failing(JobProgram):
    """A program that ends with an error, as a save on a full disk does."""

    def __init__(self) -> None:
        self.told: list[BaseException] = []

    def run(self) -> None:
        raise OSError(28, "No space left on device")

    def raised(self, error: BaseException) -> None:
        self.told.append(error)


@pytest.fixture
def full_log(monkeypatch) -> Iterator[None]:
    with suppress(OSError), open("/dev/full", "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        yield


def test_an_error_is_told_though_the_log_is_full(full_log):
    """Goal: the report of the error does not hang on its traceback, which can't be written."""
    program = Failing()
    assert exit_code_of(program) == 1
    assert [str(error) for error in program.told] == ["[Errno 28] No space left on device"]
