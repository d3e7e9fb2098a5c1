"""How the live training state is digested: row by row, so that the layout over ranks does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard

from chaosckpt.model.digest import MODULUS, StateDigest, TensorDigest
from chaosckpt.training.state import TrainState, stamp_of


def digest(state: TrainState) -> StateDigest:
    """The digest of what this rank's live objects hold now. Local: no collective, nothing is changed."""
    names = {id(parameter): name for name, parameter in state.model.named_parameters()}
    return StateDigest(
        rank=state.rank,
        world_size=state.world_size,
        params={name: tensor_digest(name, tensor) for name, tensor in _model_tensors(state.model)},
        optimizer={name: tensor_digest(name, tensor) for name, tensor in _moments(state.optimizer, names)},
        optimizer_scalars=dict(_hyperparameters(state.optimizer, names)),
        scheduler={name: canonical(value) for name, value in state.scheduler.state_dict().items()},
        step=state.step,
        rng=streams(state),
        sampler={name: canonical(value) for name, value in state.sampler.state_dict().items()},
        stamp=stamp_of(state.stamp),
    )


def streams(state: TrainState) -> dict[str, str]:
    """The digests of this rank's random streams, by their names."""
    return {name: _hash(tensor) for name, tensor in state.rng.state_dict().items()}


def tensor_digest(name: str, tensor: Tensor) -> TensorDigest:
    """The digest of one tensor, or of the part of a sharded one that this rank holds. A 0-d tensor is one row.

    Raises ValueError for a sharding other than along dimension 0 of a one-dimensional mesh.
    """
    first, total, local = _local_rows(name, tensor.detach())
    return TensorDigest(rows=local.shape[0], total=total, sum=f"{row_sum(name, tensor, first, local):032x}")


def row_sum(name: str, tensor: Tensor, first: int, rows: Tensor) -> int:
    """The sum, modulo 2**128, of the hashes of `rows`: those of `tensor` from index `first` on."""
    if rows.shape[0] == 0:
        return 0
    row_shape = tuple(tensor.shape[1:]) if tensor.dim() else "scalar"
    base = hashlib.blake2b(f"{name}|{tensor.dtype}|{row_shape}|".encode(), digest_size=16)
    data = _bytes_of(rows)
    width = len(data) // rows.shape[0]
    total = 0
    for index in range(rows.shape[0]):
        row = base.copy()
        row.update((first + index).to_bytes(8, "little"))
        row.update(data[index * width : (index + 1) * width])
        total += int.from_bytes(row.digest(), "big")
    return total % MODULUS


def canonical(value: object) -> str:
    """A scalar, or a small structure of scalars, as text that is equal only for equal values of equal types.

    Lists and tuples read alike: torch's own set_state_dict, asked for a full state, turns AdamW's betas from one into
    the other.
    """
    if isinstance(value, Tensor):
        return f"tensor:{value.dtype}:{value.tolist()!r}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(canonical(item) for item in value) + "]"
    return f"{type(value).__name__}:{value!r}"


def _model_tensors(model: torch.nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _moments(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Iterator[tuple[str, Tensor]]:
    for parameter, moments in optimizer.state.items():
        for moment, value in moments.items():
            if isinstance(value, Tensor):
                yield f"{names[id(parameter)]}/{moment}", value


def _hyperparameters(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for index, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if key == "params":
                yield f"{index}.params", canonical([names[id(parameter)] for parameter in value])
            else:
                yield f"{index}.{key}", canonical(value)
    for parameter, moments in optimizer.state.items():
        for moment, value in moments.items():
            if not isinstance(value, Tensor):
                yield f"{names[id(parameter)]}/{moment}", canonical(value)


def _local_rows(name: str, tensor: Tensor) -> tuple[int, int, Tensor]:
    """(index of the first row held, rows in all, the rows held as a plain tensor)."""
    if not isinstance(tensor, DTensor):
        local = tensor.reshape(1) if tensor.dim() == 0 else tensor
        return 0, local.shape[0], local
    local = tensor.to_local()
    placement = tensor.placements[0]
    if tensor.device_mesh.ndim != 1 or not (placement == Shard(0) or isinstance(placement, Replicate)):
        raise ValueError(f"{name} is placed as {tensor.placements}; only rows over a one-dimensional mesh are digested")
    if isinstance(placement, Replicate):
        return _local_rows(name, local)
    total, ranks = tensor.shape[0], tensor.device_mesh.size()
    chunk = -(-total // ranks)
    first = min(total, chunk * tensor.device_mesh.get_local_rank())
    if local.shape[0] != min(total, first + chunk) - first:
        raise ValueError(
            f"{name} holds {local.shape[0]} of {total} rows on {ranks} ranks: not sharded evenly along dimension 0"
        )
    return first, total, local


def _bytes_of(tensor: Tensor) -> memoryview:
    """The tensor's values in row-major order, as bytes; no copy is made where memory already lies so."""
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return flat.numpy().data


def _hash(tensor: Tensor) -> str:
    return hashlib.blake2b(_bytes_of(tensor), digest_size=16).hexdigest()
