"""The training job: how it is built on one rank, and what one step does."""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec
import numpy
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.training.averaging import average_in_order
from chaosckpt.training.state import TrainState

OUTPUTS = 4


@dataclass(frozen=True)
class Job:
    """A job built on one rank: `state` is what checkpoints hold, `forward` the model (or wrapper) that is trained."""

    settings: WorkloadSettings
    state: TrainState
    forward: nn.Module
    inputs: Tensor
    targets: Tensor


class StepReport(msgspec.Struct, frozen=True):
    """What one step did on this rank: `step` counts completed steps, `loss` is its summand of the global mean loss.

    `samples` are the global indices that this rank consumed; the ranks' lists are disjoint and together are the global
    batch.
    """

    step: int
    loss: float
    samples: list[int]


def build(settings: WorkloadSettings, rank: int, world_size: int, attempt: int) -> Job:
    """Build the job at step 0: equal parameters on every rank, random streams distinct for every rank.

    With more than one rank the default process group (gloo) must have been initialised with this rank and world size;
    fsdp2 needs it with one rank, too. Raises ValueError when it is not so. No collective is used for ddp.
    """
    if dist.is_initialized():
        group = (dist.get_rank(), dist.get_world_size())
        if group != (rank, world_size):
            raise ValueError(
                f"the process group is rank {group[0]} of {group[1]}; the job was built for {rank} of {world_size}"
            )
    elif world_size > 1 or settings.strategy == "fsdp2":
        raise ValueError(
            f"a {settings.strategy} job of {world_size} ranks needs torch.distributed.init_process_group first"
        )
    torch.default_generator.manual_seed(settings.seed)
    model = _perceptron(settings)
    forward: nn.Module = model
    if settings.strategy == "fsdp2":
        fully_shard(model, mesh=init_device_mesh("cpu", (world_size,)))
    elif world_size > 1:
        # Every rank drew the same parameters, so there is nothing to verify or broadcast.
        wrapper = DistributedDataParallel(model, init_sync=False, forward_sync_buffers=False)
        wrapper.register_comm_hook(None, average_in_order)
        forward = wrapper
    # Fused: one operation where the plain form dispatches dozens, which costs most of a first step under fsdp2.
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10 * settings.steps)
    state = TrainState(settings, rank, world_size, attempt, model, optimizer, scheduler)
    generator = torch.Generator().manual_seed(settings.seed)
    inputs = torch.randn(settings.dataset, settings.hidden, generator=generator)
    targets = torch.randn(settings.dataset, OUTPUTS, generator=generator)
    state.rng.seed(settings.seed, rank, 0)
    return Job(settings, state, forward, inputs, targets)


def train_step(job: Job) -> StepReport:
    """Train one global step on this rank's share of the batch. Draws from each of the three random streams.

    A rank's share is every world-size-th sample of the global batch, from its own rank on; it may be empty. The sum
    over the ranks' losses is the mean over the global batch, whatever the number of ranks.
    """
    state = job.state
    samples = state.sampler.next_batch()[state.rank :: state.world_size]
    # Each stream leaves a mark on the loss, so that a stream that was not restored shows in the trajectory, too.
    scale = random.uniform(0.9, 1.1)
    shift = float(numpy.random.standard_normal()) * 0.01
    noise = float(torch.rand(())) * 0.01
    inputs = job.inputs[samples] * scale + shift
    targets = job.targets[samples] + noise
    state.optimizer.zero_grad()
    summand = (job.forward(inputs) - targets).square().sum() / (OUTPUTS * job.settings.batch)
    # The wrappers average gradients over ranks; the loss is a sum over them.
    (summand * state.world_size).backward()
    state.optimizer.step()
    state.scheduler.step()
    state.step += 1
    state.refresh_stamp()
    return StepReport(state.step, float(summand.detach()), samples)


def _perceptron(settings: WorkloadSettings) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(settings.layers):
        layers += [nn.Linear(settings.hidden, settings.hidden), nn.Tanh(), nn.Dropout(settings.dropout)]
    return nn.Sequential(*layers, nn.Linear(settings.hidden, OUTPUTS))
