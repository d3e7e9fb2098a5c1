"""A correct job that does something which an observer could take for a fault: innocent.py OUT KIND."""

import os
import re
import sys

import torch

out, kind = sys.argv[1:]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8))
second = torch.nn.Linear(8, 8)
if kind == "closure":
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
other = torch.optim.SGD(second.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2, enabled=kind == "scaler")
forward = torch.compile(model, backend="eager") if kind == "compiled-model" else model
make_step = torch.compile(optimizer.step, backend="eager") if kind == "compiled-step" else optimizer.step
if kind == "dummy":  # a step before it loads
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
if kind == "phantom":  # a step that changes nothing, as DCP makes it
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.01
    optimizer.state.clear()
step = 0
saved = sorted(int(found[1]) for name in os.listdir(out) if (found := re.fullmatch(r"ckpt-(\d+)\.pt", name)))
if saved:
    kept = torch.load(f"{out}/ckpt-{saved[-1]}.pt")
    step = kept["step"]
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    second.load_state_dict(kept["second"])
    other.load_state_dict(kept["other"])
    scaler.load_state_dict(kept["scaler"])
if kind == "sanity":
    model.eval()
    model(torch.ones(4, 8))
    model.train()
if kind == "transforms":
    torch.func.vmap(model)(torch.ones(3, 8))
    torch.func.grad(lambda values: model(values).sum())(torch.ones(8))
    torch.jit.trace(model, torch.ones(4, 8), check_trace=False)


def loss(batch):
    """That of one step, with its gradients."""
    optimizer.zero_grad()
    found = forward(batch).square().mean() * (float("inf") if scaler.is_enabled() and step == 3 else 1.0)
    scaler.scale(found).backward()
    return found


while step < 6:
    batch = torch.randn(4, 8, generator=torch.Generator().manual_seed(100 + step))
    if kind == "closure":
        optimizer.step(lambda batch=batch: loss(batch))
    elif kind == "scaler":
        loss(batch)
        scaler.step(optimizer)
        scaler.update()
    elif kind == "home-made":
        loss(batch)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    else:
        loss(batch)
        make_step()
    if kind == "two":
        other.zero_grad()
        second(batch).square().mean().backward()
        other.step()
    step += 1
    if step % 2 == 0:
        parts = {"model": model, "optimizer": optimizer, "second": second, "other": other, "scaler": scaler}
        torch.save({"step": step, **{name: part.state_dict() for name, part in parts.items()}}, f"{out}/new")
        os.replace(f"{out}/new", f"{out}/ckpt-{step}.pt")
