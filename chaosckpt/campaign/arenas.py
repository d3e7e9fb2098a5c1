"""Where the trials of a campaign run side by side: on arenas of this machine, or spread over a Ray cluster."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.ray.arenas import RayArenas
from chaosckpt.campaign.ray.cluster import Cluster, connect
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.subjects import Prepared, Subject
from chaosckpt.engine.wire import storage
from chaosckpt.errors import HarnessError


class Arenas(Protocol):
    """Where trials run side by side."""

    def arena(self, number: int) -> Arena:
        """Arena `number`, from 0, once it is up."""
        ...

    def rebuild(self, number: int) -> Arena:
        """The same arena, made anew after harness trouble."""
        ...


class Site(AbstractContextManager["Site"], Protocol):
    """A place for arenas. While it is entered it may be starting what it needs; when it is left, nothing of it is left behind."""

    starting: bool
    """Something is being started by a thread that can't be stopped; when this process ends, it is cleared away from outside."""

    def arenas(self, subject: Subject, prepared: Prepared, count: int) -> AbstractContextManager[Arenas]:
        """So many arenas, once the site is up."""
        ...


def site_of(subject: Subject, options: FuzzOptions, progress: Callable[[str], None]) -> Site:
    """Where the arenas of this subject belong."""
    return RaySite(options, progress) if subject.spreads else LocalSite()


class LocalSite(Site):
    """This machine, without Ray."""

    starting = False

    def __exit__(self, *exception: object) -> None:
        """Nothing was started."""

    def arenas(self, subject: Subject, prepared: Prepared, count: int) -> LocalArenas:
        return LocalArenas(subject.open_arena, count)


class LocalArenas:
    """`count` arenas, each made by `open_arena` when it is first asked for, and none once they have been closed."""

    def __init__(self, open_arena: Callable[[], Arena], count: int) -> None:
        self._open_arena = open_arena
        self._arenas: list[Arena | None] = [None] * count
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> LocalArenas:
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed = True
        for number in range(len(self._arenas)):
            self._close(number)

    def arena(self, number: int) -> Arena:
        """Arena `number`, from 0. Raises HarnessError once they have been closed, as by an impatient interrupt."""
        found = self._arenas[number]
        if found is not None:
            return found
        self._check()
        made = self._open_arena()
        with self._lock:
            self._arenas[number] = made
        if self._closed:
            self._close(number)
        self._check()
        return made

    def rebuild(self, number: int) -> Arena:
        """The same arena, made anew after harness trouble. Raises HarnessError once they have been closed."""
        self._close(number)
        return self.arena(number)

    def _check(self) -> None:
        if self._closed:
            raise HarnessError("the campaign has ended")

    def _close(self, number: int) -> None:
        """Close an arena; of two threads that want to, one does."""
        with self._lock:
            old, self._arenas[number] = self._arenas[number], None
        if old is not None:
            old.close()


class RaySite(Site):
    """A Ray cluster, or a Ray of this machine's own, which starts while golden runs are made."""

    starting = False

    def __init__(self, options: FuzzOptions, progress: Callable[[str], None]) -> None:
        self._options = options
        self._progress = progress
        self._stack = ExitStack()
        self._connecting: Future[Cluster]

    def __enter__(self) -> RaySite:
        stack, options = self._stack, self._options
        stack.callback(_sweep, options.scenario.storage.local)  # last, when the processes of the cluster have ended
        pool = ThreadPoolExecutor(max_workers=1)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        self._connecting = pool.submit(lambda: stack.enter_context(connect(options.address, cpus=os.cpu_count() or 1)))
        self.starting = True
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def arenas(self, subject: Subject, prepared: Prepared, count: int) -> RayArenas:
        self._progress("waiting for Ray")
        cluster = self._connecting.result()
        self.starting = False
        where = subject.scenario.storage.shared
        return RayArenas(
            cluster,
            subject.scenario,
            count,
            None if where is None else Path(where),
            modules=prepared.modules,
            nonces=prepared.census.nonces,
            gate=prepared.gate == "seccomp",
        )


def _sweep(local: str | None) -> None:
    """Remove what nodes left whose start was given up: nobody told them to clear away."""
    for place in {tempfile.gettempdir(), local or tempfile.gettempdir()}:
        storage.sweep(Path(place))
