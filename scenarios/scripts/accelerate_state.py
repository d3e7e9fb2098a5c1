"""accelerate's save_state with automatic naming, and load_state of the newest; --total-limit tells how many are kept."""

import argparse
import os
import re

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed

arguments = argparse.ArgumentParser()
arguments.add_argument("--out", required=True)
arguments.add_argument("--total-limit", type=int, default=2)
chosen = arguments.parse_args()
out = chosen.out
set_seed(0)

project = ProjectConfiguration(project_dir=out, automatic_checkpoint_naming=True, total_limit=chosen.total_limit)
accelerator = Accelerator(cpu=True, project_config=project)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
done = 0
folder = os.path.join(out, "checkpoints")
names = os.listdir(folder) if os.path.isdir(folder) else []
saved = sorted(int(found[1]) for name in names if (found := re.fullmatch(r"checkpoint_(\d+)", name)))
if saved:
    accelerator.load_state(os.path.join(folder, f"checkpoint_{saved[-1]}"))
    done = saved[-1] + 1
    project.iteration = done
    print(f"resumed from step {saved[-1]}", flush=True)
for number in range(done, 4):
    for _ in range(2):
        optimizer.zero_grad()
        accelerator.backward(model(torch.randn(4, 8)).square().sum())
        optimizer.step()
    accelerator.save_state()
    print(f"saved step {number}", flush=True)
torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(out, "final.pt"))
