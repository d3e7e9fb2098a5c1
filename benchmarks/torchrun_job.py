"""The job of a kill trial as a plain training script for torchrun: DIRECTORY [--kill]. It knows nothing of the harness."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

STEPS, SAVE_EVERY, HIDDEN, LAYERS, BATCH = 3, 2, 16, 2, 4


class Training:
    """Model, optimizer and scheduler of one rank, with their checkpoints in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.step = 0
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for _ in range(LAYERS):
            layers += [nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Dropout(0.1)]
        self.model = nn.Sequential(*layers, nn.Linear(HIDDEN, 4))
        self.forward = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=10 * STEPS)

    def train(self) -> None:
        """One step, on this rank's half of the batch."""
        self.optimizer.zero_grad()
        inputs = torch.randn(BATCH // dist.get_world_size(), HIDDEN)
        self.forward(inputs).square().mean().backward()
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1

    def save(self) -> None:
        """Save this step; rank 0 notes what must be found again."""
        if dist.get_rank() == 0:
            (self.root / f"step-{self.step}.digest").write_text(self.digest())
        state_dict_saver.save(self.state(), checkpoint_id=self.root / f"step-{self.step}")

    def load(self) -> bool:
        """Load the newest complete checkpoint and verify it. False when there is none."""
        complete = sorted(self.root.glob("step-*/.metadata"))
        if not complete:
            return False
        newest = complete[-1].parent
        state = self.state()
        state_dict_loader.load(state, checkpoint_id=newest)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["step"]
        if self.digest() != (self.root / f"{newest.name}.digest").read_text():
            raise SystemExit(f"{newest} does not hold what was saved")
        return True

    def state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "scheduler": self.scheduler.state_dict(), "step": self.step}

    def digest(self) -> str:
        found = hashlib.blake2b()
        for tensor in self.model.state_dict().values():
            found.update(tensor.numpy().tobytes())
        return found.hexdigest()


def die_at_fsync(descriptor: object) -> None:
    """What stands in for os.fsync in mid-save: the shard is written, nothing is complete."""
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Resume, train, save; with --kill rank 0 dies in its last save."""
    root, kill = Path(sys.argv[1]), "--kill" in sys.argv[2:]
    dist.init_process_group("gloo")
    root.mkdir(exist_ok=True)
    training = Training(root)
    if not training.load() and not kill:
        raise SystemExit("there is nothing to resume from")
    while training.step < STEPS:
        training.train()
        if training.step % SAVE_EVERY == 0 or training.step == STEPS:
            if kill and training.step == STEPS and dist.get_rank() == 0:
                os.fsync = die_at_fsync  # type: ignore[assignment]
            training.save()
    dist.barrier()
    # At times destroy_process_group never returns (torch 2.13, gloo: it joins a thread that waits for a lock).
    os._exit(0)


if __name__ == "__main__":
    main()
