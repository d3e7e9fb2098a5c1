"""torch.save under another name, then os.replace: a checkpoint has its name only once it is written."""

import argparse
import os
import re

import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("--out", required=True)
out = arguments.parse_args().out

torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
step = 0
os.makedirs(out, exist_ok=True)
saved = sorted(int(found[1]) for name in os.listdir(out) if (found := re.fullmatch(r"ckpt-(\d+)\.pt", name)))
if saved:
    state = torch.load(f"{out}/ckpt-{saved[-1]}.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    step = state["step"]
    print(f"resumed from step {step}")
while step < 6:
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().sum().backward()
    optimizer.step()
    step += 1
    if step % 2 == 0:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
            "step": step,
        }
        torch.save(state, f"{out}/new.pt")
        os.replace(f"{out}/new.pt", f"{out}/ckpt-{step}.pt")
        print(f"saved step {step}")
torch.save(model.state_dict(), f"{out}/final.pt")
