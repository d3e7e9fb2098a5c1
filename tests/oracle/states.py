"""States, samples and losses of a deterministic training job, as its ranks would tell them in a journal."""

from __future__ import annotations

import hashlib

from chaosckpt.model.digest import MODULUS, StateDigest, TensorDigest

PARAMS = ("0.weight", "0.bias", "3.weight")
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
ROWS = 4
STEPS = 6
BATCH = 4


def tensor(name: str, step: int, variant: str, rank: int = 0, world: int = 1) -> TensorDigest:
    """The rows rank, rank + world, ... of a tensor as it is after a step; all of them in a world of one."""
    rows = range(rank, ROWS, world)
    hashes = (hashlib.blake2b(f"{name}|{row}|{step}|{variant}".encode(), digest_size=16).hexdigest() for row in rows)
    return TensorDigest(rows=len(rows), total=ROWS, sum=f"{sum(int(h, 16) for h in hashes) % MODULUS:032x}")


def state(
    step: int, rank: int = 0, world: int = 2, *, attempt: int = 0, variant: str = "", sharded: bool = False
) -> StateDigest:
    """What a rank holds after a step. Training is deterministic: two attempts differ only where `variant` says so."""
    part = (rank, world) if sharded else (0, 1)
    names = [f"{name}/{moment}" for name in PARAMS for moment in MOMENTS] if step else []
    return StateDigest(
        rank=rank,
        world_size=world,
        params={name: tensor(name, step, variant, *part) for name in PARAMS},
        optimizer={name: tensor(name, step, variant, *part) for name in names},
        optimizer_scalars={"0.lr": f"float:{0.1 / (1 + step)}", "0.eps": "float:1e-08"},
        scheduler={"last_epoch": f"int:{step}", "T_max": "int:60"},
        step=step,
        rng={name: f"{name}/{rank}/{step}{variant}" for name in ("torch", "python", "numpy")},
        sampler={"position": f"int:{4 * step}", "dataset": "int:64", "seed": "int:0"},
        stamp=(attempt, step or -1, rank, world),
    )


def share(step: int, rank: int, world: int) -> tuple[int, ...]:
    """The samples of a rank in a step: every world-size-th of the step's batch."""
    return tuple(range(BATCH * (step - 1), BATCH * step))[rank::world]


def loss(step: int, rank: int, world: int) -> str:
    return float(step * 100 + rank * 10 + world).hex()
