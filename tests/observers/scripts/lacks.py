"""A job whose checkpoint is complete, but of whose parts one is not restored: lacks.py OUT PART, or "nothing"."""

import os
import re
import sys

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

out, lacks = sys.argv[1:]
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 8)
)
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
own = torch.Generator().manual_seed(7)
data = torch.randn(48, 8, generator=own)
step = position = 0
saved = sorted(int(found[1]) for name in os.listdir(out) if (found := re.fullmatch(r"ckpt-(\d+)\.pt", name)))
if saved:
    kept = torch.load(f"{out}/ckpt-{saved[-1]}.pt")
    step = kept["step"]
    weights = {name: value for name, value in kept["model"].items() if lacks != "buffers" or not name.startswith("1.")}
    weights |= {name: kept["model"][name] for name in ("1.weight", "1.bias")}
    model.load_state_dict(weights, strict=False)
    if lacks != "optimizer":
        optimizer.load_state_dict(kept["optimizer"])
    if lacks != "scheduler":
        scheduler.load_state_dict(kept["scheduler"])
    else:
        optimizer.param_groups[0]["lr"] = 0.1
    if lacks != "averages":
        averaged.load_state_dict(kept["averaged"])
    if lacks != "rng":
        torch.set_rng_state(kept["rng"])
    if lacks != "data":
        position = kept["position"]
while step < 6:
    batch = data[position : position + 4]
    position += 4
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    scheduler.step()
    averaged.update_parameters(model)
    step += 1
    if step % 2 == 0:
        kept = {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "averaged": averaged.state_dict(),
            "rng": torch.get_rng_state(),
            "position": position,
        }
        torch.save(kept, f"{out}/new")
        os.replace(f"{out}/new", f"{out}/ckpt-{step}.pt")
