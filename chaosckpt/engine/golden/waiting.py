"""What is told of a golden run that stands still: for how long, what its ranks wait for, and what they were refused."""

from __future__ import annotations

from collections.abc import Callable

from chaosckpt.engine.runner.attempt import Listener
from chaosckpt.engine.runner.ranks import Ranks


class Waiting(Listener):
    """Tells `progress` about a run, called `what`, that gets nowhere. `last` is what was told last, empty where nothing was."""

    def __init__(self, what: str, progress: Callable[[str], None]) -> None:
        self._what = what
        self._progress = progress
        self.last = ""

    def quiet(self, seconds: float, ranks: Ranks) -> None:
        refused = dict.fromkeys(one for node in ranks.nodes for one in node.output().refused)
        waits = "; ".join(one for node in ranks.nodes for one in node.describe(()))
        self.last = f"no storage operation for {seconds:.0f} s; {waits}" + (
            f"; chaosckpt refused: {'; '.join(list(refused)[:5])}" if refused else ""
        )
        self._progress(f"{self._what}: {self.last}")
