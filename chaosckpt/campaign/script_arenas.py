"""Arenas for a command, side by side on this machine."""

from __future__ import annotations

import threading

from chaosckpt.engine.runner.command_arena import ScriptArena, script_arena
from chaosckpt.engine.wire import storage
from chaosckpt.errors import HarnessError
from chaosckpt.model.scenario import Scenario


class ScriptArenas:
    """`count` arenas for one scenario's command, each made when it is first asked for, and none once they have been closed."""

    def __init__(self, scenario: Scenario, count: int, modules: tuple[str, ...]) -> None:
        self._scenario = scenario
        self._modules = modules
        self._arenas: list[ScriptArena | None] = [None] * count
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> ScriptArenas:
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed = True
        for number in range(len(self._arenas)):
            self._close(number)

    def arena(self, number: int) -> ScriptArena:
        """Arena `number`, from 0. Raises HarnessError once they have been closed, as by an impatient interrupt."""
        found = self._arenas[number]
        if found is not None:
            return found
        self._check()
        made = open_script_arena(self._scenario, self._modules)
        with self._lock:
            self._arenas[number] = made
        if self._closed:
            self._close(number)
        self._check()
        return made

    def rebuild(self, number: int) -> ScriptArena:
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


def open_script_arena(scenario: Scenario, modules: tuple[str, ...] = ()) -> ScriptArena:
    """An arena for a command, on this machine; warmed with these modules where the command can be forked."""
    directory = storage.make_below(scenario.storage.shared)
    try:
        return script_arena(scenario, directory, modules)
    except BaseException:  # an interrupt, too, must not leave the directory behind
        storage.remove(directory)
        raise
