"""Every rank writes into a temporary directory; rank 0 renames it once all have written."""

import argparse
import os
import re

import torch
import torch.distributed as dist

arguments = argparse.ArgumentParser()
arguments.add_argument("--out", required=True)
out = arguments.parse_args().out

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.AdamW(model.parameters())
step = 0
os.makedirs(out, exist_ok=True)
saved = sorted(int(found[1]) for name in os.listdir(out) if (found := re.fullmatch(r"ckpt-(\d+)", name)))
newest = [saved[-1] if saved else 0]
dist.broadcast_object_list(newest)
if newest[0]:
    state = torch.load(f"{out}/ckpt-{newest[0]}/model.pt")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(torch.load(f"{out}/ckpt-{newest[0]}/rng-{rank}.pt"))
    step = state["step"]
    if rank == 0:
        print(f"resumed from step {step}", flush=True)


def put(what: object, path: str) -> None:
    """One file, on the disk when this returns."""
    with open(path, "wb") as file:
        torch.save(what, file)
        file.flush()
        os.fsync(file.fileno())


def write(directory: str) -> None:
    """This rank's files."""
    os.makedirs(directory, exist_ok=True)
    if rank == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        put(state, f"{directory}/model.pt")
    put(torch.get_rng_state(), f"{directory}/rng-{rank}.pt")


while step < 6:
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().sum().backward()
    optimizer.step()
    step += 1
    if step % 2 == 0:
        write(f"{out}/new-{step}")
        dist.barrier()
        if rank == 0:
            os.rename(f"{out}/new-{step}", f"{out}/ckpt-{step}")
        dist.barrier()
        if rank == 0:
            print(f"saved step {step}", flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), f"{out}/final.pt")
dist.destroy_process_group()
