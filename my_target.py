"""A checkpointer to test: one directory per step, and a marker file that declares it complete. It has a bug; fuzz finds it."""

from __future__ import annotations

import torch

from chaosckpt.targets import Chosen, Done, Intent, Nothing, Pending, Target


class MyTarget(Target):
    """Replace the bodies of `save` and `recover` with calls of your own checkpointing code."""

    def save(self, state, step: int) -> Pending:
        directory = self.shared / f"step-{step}"
        if self.rank == 0:  # One rank only: the order of two would differ from run to run.
            directory.mkdir(exist_ok=True)
        self.barrier()
        if self.rank == 0:
            (directory / "COMPLETE").touch()  # The bug: the marker exists before the files do.
            torch.save(state.state_dict(), directory / "state.pt")
        torch.save(state.rank_state_dict(), directory / f"rank-{self.rank}.pt")
        self.barrier()
        return Done("shared")

    def recover(self, state, intent: Intent) -> Chosen | Nothing:
        complete = [int(marker.parent.name.removeprefix("step-")) for marker in self.shared.glob("step-*/COMPLETE")]
        newest = self.broadcast(max(complete, default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*/COMPLETE"))
        directory = self.shared / f"step-{newest}"
        state.load_state_dict(torch.load(directory / "state.pt", weights_only=False))
        own = directory / f"rank-{self.rank}.pt"
        # A rank added since the save has no file of its own; every rank's file holds the data position.
        state.load_rank_state_dict(torch.load(own if own.exists() else directory / "rank-0.pt", weights_only=False))
        return Chosen(newest)
