"""What a training script may tell chaosckpt, in three lines; outside of chaosckpt every call does nothing.

    from chaosckpt import probe
    probe.saved(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})     # once a save is safe
    probe.resumed(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})   # once it was loaded

and, where the data is to be audited, `probe.trained(step, sample_ids)` for each step. Standard library only: importing this costs a
script nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

VARIABLE = "CHAOSCKPT_PROBE"
"""The environment variable that names the file to which a script under test tells."""


def saved(step: int, state: Any = None) -> None:
    """The save of this step is safe: from now on the job can be resumed from it. `state` is what was saved, if it is to be compared."""
    _tell("saved", step, digest=_digest_of(state))


def resumed(step: int, state: Any = None) -> None:
    """The job goes on from this step. `state` is what the live objects hold now, in the same shape as it was given to `saved`."""
    _tell("resumed", step, digest=_digest_of(state))


def trained(step: int, samples: Iterable[int]) -> None:
    """This rank trained on these samples, by their global numbers, in this step."""
    _tell("trained", step, samples=[int(sample) for sample in samples])


def active() -> bool:
    """Whether anybody listens."""
    return VARIABLE in os.environ


def digest(state: Any) -> str:
    """32 hexadecimal digits, equal for equal states: nested dictionaries and lists of tensors, arrays and plain values."""
    found = hashlib.blake2b(digest_size=16)
    _feed(found, state)
    return found.hexdigest()


def _digest_of(state: Any) -> str:
    return digest(state) if state is not None and active() else ""


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            found.update(f"{key!r}:".encode())
            _feed(found, value[key])
    elif isinstance(value, (list, tuple)):
        found.update(f"[{len(value)}]".encode())
        for entry in value:
            _feed(found, entry)
    elif hasattr(value, "detach"):
        # A tensor, of whatever kind: its values as bytes, without importing what made it.
        plain = value.detach().cpu().contiguous()
        found.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        found.update(bytes(plain.reshape(-1).view(_bytes_of(plain)).numpy()))
    elif hasattr(value, "tobytes"):
        found.update(f"{getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}".encode() + value.tobytes())
    else:
        found.update(f"{type(value).__name__}:{value!r};".encode())


def _bytes_of(tensor: Any) -> Any:
    import sys

    return sys.modules[type(tensor).__module__.partition(".")[0]].uint8


def _tell(what: str, step: int, **more: Any) -> None:
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    rank = int(os.environ.get("RANK", "0"))
    line = json.dumps(
        {"what": what, "rank": rank, "step": int(step), **{key: value for key, value in more.items() if value}}
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)
