"""An interrupt ends what runs side by side with everything closed, also while an arena is still being opened."""

from __future__ import annotations

import os
import signal
import sys
import threading
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


def waits_for_its_threads(thread: threading.Thread) -> bool:
    """Whether a thread has started all others, and waits now."""
    names = []
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return "run" in names and "wait" in names and "start" not in names


def test_an_interrupt_while_an_arena_is_opened_closes_it() -> None:
    """Goal: the thread that opens it is waited for, though Thread.join of Python 3.11 takes it for ended when interrupted."""
    opened: list[Opened] = []
    ending = threading.Event()

    class Told(SideBySide[int, int]):
        def _end(self, *arguments: Any) -> None:
            ending.set()
            super()._end(*arguments)

    def slowly(task: int) -> Any:
        while not waits_for_its_threads(threading.main_thread()):
            pass
        os.kill(os.getpid(), signal.SIGINT)
        assert ending.wait(timeout=60)
        opened.append(Opened())
        return opened[-1]

    side = Told(lambda task, arena: task, lambda task, why: task, slowly, keep=False)
    with pytest.raises(KeyboardInterrupt):
        side.run([1], width=1)
    assert [arena.closed for arena in opened] == [True]
