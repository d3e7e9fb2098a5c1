"""`canary-stale-shards`: a step's directory is saved over without being cleared, and every shard in it is loaded.

Caught first by complete-only: when a larger world's save of a step is interrupted and a smaller world saves that step
again, the larger world's last shard is still there and overrides newer parameters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.settings import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import load_file, own_file, save_synced
from chaosckpt.workload.state import TrainState

MARKER = "complete"


class StaleShards(Target):
    """Each rank writes every world-size-th parameter; a marker says that all have."""

    name = "canary-stale-shards"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash", "world-size-change"})
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the directory may hold shards of an earlier attempt."""
        directory = step_directory(self.shared, step)
        self.stage("persist")
        self.on_rank_zero(f"opening {directory}", lambda: self._open(directory))
        value = state.state_dict()
        names = sorted(value["model"])[self.rank :: self.world_size]
        value["model"] = {name: value["model"][name] for name in names}
        shard = {"shared": value, "own": state.rank_state_dict()}
        self.together(f"writing {directory}", lambda: self._write(shard, directory / own_file(self.rank)))
        self.on_rank_zero(f"marking {directory}", (directory / MARKER).touch)
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load every shard of the newest marked directory."""
        self.stage("discover")
        steps = [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / MARKER).exists()]
        newest = self.broadcast(max(steps, default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*" / MARKER))
        self.stage("load")
        paths = sorted(step_directory(self.shared, newest).glob("rank-*.pt"))
        shards = self.together(f"loading {paths}", lambda: {path.name: load_file(path) for path in paths})
        own = shards.get(own_file(self.rank), shards[own_file(0)])
        model = {name: tensor for shard in shards.values() for name, tensor in shard["shared"]["model"].items()}
        state.load_state_dict({**shards[own_file(0)]["shared"], "model": model})
        state.load_rank_state_dict(own["own"])
        return Chosen(newest)

    def _write(self, shard: dict[str, Any], path: Path) -> None:
        save_synced(shard, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def _open(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / MARKER).unlink(missing_ok=True)
