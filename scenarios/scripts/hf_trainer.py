"""transformers.Trainer with a tiny model; it resumes from its last checkpoint where there is one."""

import argparse
import os

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

arguments = argparse.ArgumentParser()
arguments.add_argument("--out", required=True)
out = arguments.parse_args().out
set_seed(0)


class Model(torch.nn.Module):
    """A linear model that returns its loss, as Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.layer(x)
        return {"loss": (y - labels).square().mean(), "logits": y}


class Tell(TrainerCallback):
    """Says which step was resumed from."""

    def on_train_begin(self, args, state, control, **rest) -> None:
        if state.global_step and state.is_world_process_zero:
            print(f"resumed from step {state.global_step}", flush=True)


data = [{"x": torch.randn(8), "labels": torch.randn(8)} for _ in range(16)]
settings = TrainingArguments(
    output_dir=out,
    max_steps=6,
    save_steps=2,
    per_device_train_batch_size=2,
    report_to="none",
    use_cpu=True,
    seed=0,
    disable_tqdm=True,
    logging_strategy="no",
    save_total_limit=2,
    dataloader_pin_memory=False,
)
trainer = Trainer(model=Model(), args=settings, train_dataset=data, callbacks=[Tell()])
last = get_last_checkpoint(out) if os.path.isdir(out) else None
trainer.train(resume_from_checkpoint=True if last else None)
if trainer.is_world_process_zero():
    torch.save(trainer.model.state_dict(), os.path.join(out, "final.pt"))
