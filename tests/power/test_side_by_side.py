"""An interrupt ends what runs side by side with everything closed, also while an arena is still being opened."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from tests.power.side_by_side import SideBySide


class Opened:
    """An arena without nodes."""

    closed = False

    def distinct(self) -> list[Any]:
        return []

    def close(self) -> None:
        self.closed = True


def test_an_interrupt_while_an_arena_is_opened_closes_it() -> None:
    """Goal: the thread that opens it is waited for, though Thread.join of Python 3.11 takes it for ended when interrupted."""
    opened: list[Opened] = []

    def slowly(task: int) -> Any:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
        opened.append(Opened())
        return opened[-1]

    side = SideBySide(lambda task, arena: task, lambda task, why: task, slowly, keep=False)
    with pytest.raises(KeyboardInterrupt):
        side.run([1], width=1)
    assert [arena.closed for arena in opened] == [True]
