"""Labels: operations of savers beside training belong to the save that their path names."""

from __future__ import annotations

import pytest

from chaosckpt.engine.node.phase import ReportedPhase
from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import SaveStarted
from chaosckpt.model.operation import Address, Operation, Role

DIGEST = StateDigest(
    rank=0,
    world_size=1,
    params={},
    optimizer={},
    optimizer_scalars={},
    scheduler={},
    step=0,
    rng={},
    sampler={},
    stamp=(0, 0, 0, 1),
)


def in_saves(*steps: int) -> ReportedPhase:
    phase = ReportedPhase()
    for step in steps:
        phase.report(SaveStarted(rank=0, step=step, digest=DIGEST))
    return phase


def operation(path: str, role: Role = "thread") -> Operation:
    return Operation(address=Address(0, role, "write", f"shared:{path}", 1, 0), sequence=1, raw=f"shared:{path}")


@pytest.mark.parametrize(
    ("path", "role", "step"),
    [
        ("step-000001/__2_0.distcp", "thread", 1),
        ("step-000002/__1_0.distcp", "child", 2),
        ("step-000001/__2_0.distcp", "main", 2),
        ("latest/.metadata", "thread", 2),
    ],
)
def test_the_save_that_a_path_names(path: str, role: Role, step: int) -> None:
    """Goal: with two saves under way, a thread's operation is labelled by its own save, the rank's own by the newest."""
    phase = in_saves(1, 2)
    assert phase.step_of(operation(path, role)) == step
    assert phase.label_of(operation(path, role)) == f"persist of save {step}"


def test_a_lone_save_has_all() -> None:
    """Goal: one save under way, and whatever happens belongs to it."""
    assert in_saves(2).step_of(operation("step-000001/__0_0.distcp")) == 2
