"""A checkpointer of our own: one file a rank, and a marker that says "this directory is complete"."""

import torch

from chaosckpt.targets import Chosen, Done, Target


class MyTarget(Target):
    def save(self, state, step):
        directory = self.shared / f"step-{step}"
        value = {"shared": state.state_dict(), "own": state.rank_state_dict()}
        if self.rank == 0:
            directory.mkdir(exist_ok=True)
            (directory / "DONE").unlink(missing_ok=True)
        self.barrier()
        torch.save(value, directory / f"rank-{self.rank}.pt")
        self.barrier()
        if self.rank == 0:
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
