"""Work that is shared out among a few arenas, each with its own thread, and that an interrupt ends with everything closed."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TypeVar

import structlog

from chaosckpt.engine.arena import Arena
from chaosckpt.errors import ChaosckptError

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    tasks: Sequence[Task],
    work: Callable[[Task, Arena], Result],
    failed: Callable[[Task, str], Result],
    open_arena: Callable[[Task], Arena],
    width: int,
    *,
    keep: bool = True,
) -> list[Result]:
    """The results of `work`, in the order of the tasks. One that fails in a known way gives what `failed` makes of the reason.

    With `keep` a thread's arena serves all its tasks; one that had trouble is opened anew. Whatever else a thread raises is raised here.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(tasks)):
        waiting.put(number)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    arenas: list[Arena] = []

    def serve() -> None:
        arena: Arena | None = None
        try:
            while not errors:
                number = waiting.get_nowait()
                try:
                    if arena is None:
                        arena = open_arena(tasks[number])
                        arenas.append(arena)
                    results[number] = work(tasks[number], arena)
                except ChaosckptError as error:
                    results[number] = failed(tasks[number], f"{type(error).__name__}: {error}")
                    broken = True
                else:
                    broken = False
                if arena is not None and (broken or not keep):
                    arenas.remove(arena)
                    arena.close()
                    arena = None
        except queue.Empty:
            pass
        except BaseException as error:  # A fault of our own in a thread must reach the main thread.
            errors.append(error)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(width, len(tasks)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=0.5)  # A join without a limit would keep signals from being handled.
    except KeyboardInterrupt as interrupt:
        errors.append(interrupt)
        for arena in list(arenas):
            for node in arena.distinct():
                node.destroy()  # What runs there ends, and its thread with it.
        for thread in threads:
            thread.join(timeout=20)
    finally:
        for arena in arenas:
            arena.close()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]


def interruptible() -> None:
    """SIGTERM ends the run as Ctrl-C does, with everything closed and removed; what is logged leaves standard output alone."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
