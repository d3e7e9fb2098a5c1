"""Running the command line in this process, as the console script does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from chaosckpt.cli.failure import guarded
from chaosckpt.cli.main import group


class Result(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys) -> Run:
    """Call it with the arguments of a command line."""

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            guarded(group, list(arguments))
        printed = capsys.readouterr()
        return Result(int(ended.value.code or 0), printed.out, printed.err)

    return call
