"""Work that is shared out among a few arenas, each with its own thread, and that an interrupt ends with everything closed."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Generic, TypeVar

import structlog

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.errors import ChaosckptError

Task = TypeVar("Task")
Result = TypeVar("Result")


class SideBySide(Generic[Task, Result]):
    """Runs `work` for each task on an arena that `open_arena` opens.

    A task that fails in a known way gives what `failed` makes of the reason. With `keep` a thread's arena serves all its
    tasks; one that had trouble is opened anew.
    """

    def __init__(
        self,
        work: Callable[[Task, Arena], Result],
        failed: Callable[[Task, str], Result],
        open_arena: Callable[[Task], Arena],
        *,
        keep: bool,
    ) -> None:
        self._work = work
        self._failed = failed
        self._open = open_arena
        self._keep = keep
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._arenas: list[Arena] = []
        self._errors: list[BaseException] = []
        self._results: dict[int, Result] = {}

    def run(self, tasks: Sequence[Task], width: int) -> list[Result]:
        """The results, in the order of the tasks. Whatever a thread raises beside known errors is raised here."""
        for number in range(len(tasks)):
            self._waiting.put(number)
        ended = [threading.Event() for _ in range(min(width, len(tasks)))]
        try:
            for event in ended:
                threading.Thread(target=self._serve, args=(tasks, event), daemon=True).start()
            # Not by Thread.join: interrupted, Python 3.11 takes the thread for ended though it still runs.
            for event in ended:
                while not event.wait(0.5):  # A wait without a limit would keep signals from being handled.
                    pass
        except KeyboardInterrupt as interrupt:
            self._end(ended, interrupt)
        finally:
            for arena in self._arenas:
                arena.close()
        if self._errors:
            raise self._errors[0]
        return [self._results[number] for number in range(len(tasks))]

    def _serve(self, tasks: Sequence[Task], ended: threading.Event) -> None:
        arena: Arena | None = None
        try:
            while not self._errors:
                number = self._waiting.get_nowait()
                arena = self._one(number, tasks[number], arena)
        except queue.Empty:
            pass
        except BaseException as error:  # A fault of our own in a thread must reach the main thread.
            self._errors.append(error)
        finally:
            ended.set()

    def _one(self, number: int, task: Task, arena: Arena | None) -> Arena | None:
        """Do one task; returns the arena for the next one, if there is one to be used again."""
        keep = self._keep
        try:
            if arena is None:
                arena = self._open(task)
                self._arenas.append(arena)
                if self._errors:
                    return arena  # The run was interrupted while this one warmed up.
            self._results[number] = self._work(task, arena)
        except ChaosckptError as error:
            self._results[number] = self._failed(task, f"{type(error).__name__}: {error}")
            keep = False
        if arena is not None and not keep:
            self._arenas.remove(arena)
            arena.close()
            arena = None
        return arena

    def _end(self, ended: Sequence[threading.Event], interrupt: KeyboardInterrupt) -> None:
        """End what runs on the arenas, and with it the threads; one that warms an arena up is waited for."""
        self._errors.insert(0, interrupt)
        for arena in self._arenas:
            for node in arena.distinct():
                node.destroy()
        for event in ended:
            event.wait()


def interruptible() -> None:
    """SIGTERM ends the run as Ctrl-C does, with everything closed and removed; what is logged leaves standard output alone."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
