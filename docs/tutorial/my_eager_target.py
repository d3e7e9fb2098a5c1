"""The same checkpointer with a bug: the marker is written too early. `chaosckpt fuzz` finds it."""

import torch

from chaosckpt.targets import Chosen, Done, Target


class MyEagerTarget(Target):
    def save(self, state, step):
        directory = self.shared / f"step-{step}"
        value = {"shared": state.state_dict(), "own": state.rank_state_dict()}
        if self.rank == 0:
            directory.mkdir(exist_ok=True)
            (directory / "DONE").unlink(missing_ok=True)
        self.barrier()
        torch.save(value, directory / f"rank-{self.rank}.pt")
        if self.rank == 0:  # Rank 0 is done, but are the others?
            (directory / "DONE").touch()
        self.barrier()
        return Done()

    def recover(self, state, intent):
        complete = self.retained()
        if not complete:
            return self.nothing(intent, looked_for=f"{self.shared}/step-*/DONE")
        self.load(state, complete[-1])
        return Chosen(complete[-1])

    def retained(self):
        markers = self.shared.glob("step-*/DONE")
        return self.broadcast(sorted(int(marker.parent.name.removeprefix("step-")) for marker in markers))

    def load(self, state, step):
        path = self.shared / f"step-{step}" / f"rank-{self.rank}.pt"
        value = self.together(f"loading {path}", lambda: torch.load(path))
        state.load_state_dict(value["shared"])
        state.load_rank_state_dict(value["own"])
