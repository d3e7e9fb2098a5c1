"""Arenas for a command, side by side on this machine."""

from __future__ import annotations

from chaosckpt.engine import storage
from chaosckpt.engine.script_arena import ScriptArena, script_arena
from chaosckpt.model.scenario import Scenario


class ScriptArenas:
    """`count` arenas for one scenario's command, each made when it is first asked for."""

    def __init__(self, scenario: Scenario, count: int, modules: tuple[str, ...]) -> None:
        self._scenario = scenario
        self._modules = modules
        self._arenas: list[ScriptArena | None] = [None] * count

    def __enter__(self) -> ScriptArenas:
        return self

    def __exit__(self, *exception: object) -> None:
        for arena in self._arenas:
            if arena is not None:
                arena.close()

    def arena(self, number: int) -> ScriptArena:
        """Arena `number`, from 0."""
        found = self._arenas[number]
        if found is None:
            found = self._arenas[number] = open_script_arena(self._scenario, self._modules)
        return found

    def rebuild(self, number: int) -> ScriptArena:
        """The same arena, made anew after harness trouble."""
        old = self._arenas[number]
        if old is not None:
            old.close()
        self._arenas[number] = None
        return self.arena(number)


def open_script_arena(scenario: Scenario, modules: tuple[str, ...] = ()) -> ScriptArena:
    """An arena for a command, on this machine; warmed with these modules where the command can be forked."""
    directory = storage.make_below(scenario.storage.shared)
    try:
        return script_arena(scenario, directory, modules)
    except BaseException:  # an interrupt, too, must not leave the directory behind
        storage.remove(directory)
        raise
