"""The census cache: golden results by the content of all that they depend on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

import chaosckpt
from chaosckpt.engine.wire import versions
from chaosckpt.engine.wire.sources import Sources
from chaosckpt.model import formats
from chaosckpt.model.scenario import Scenario

Kept = TypeVar("Kept", bound=msgspec.Struct)


def directory() -> Path:
    """Where censuses are kept: $XDG_CACHE_HOME/chaosckpt, else ~/.cache/chaosckpt."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "chaosckpt" / "census"


def environment() -> dict[str, str]:
    """Versions on which the operations of a checkpointer depend."""
    return versions.of("python", "torch", "chaosckpt", "hypothesis", "kernel", "machine", "cpu_flags")


def key(scenario: Scenario, code: Sources) -> str:
    """16 hexadecimal digits that change with a target's job, its file and its `code`, the harness's, the versions or the processor."""
    job = (scenario.target, scenario.workload, scenario.topology, scenario.run)
    parts = [
        str(formats.RUN).encode(),
        msgspec.json.encode(job, order="deterministic"),
        msgspec.json.encode(environment(), order="deterministic"),
    ]
    parts += [path.read_bytes() for path in sorted(Path(chaosckpt.__file__).parent.rglob("*.py"))]
    file = Path(scenario.target.use.rpartition(":")[0])
    if file.suffix == ".py" and file.is_file():
        parts.append(file.read_bytes())
    parts.append(code.digest().encode())
    return _digest(b"\0".join(parts))


def load(cache: Path, name: str, kind: type[Kept]) -> Kept | None:
    """What was kept under this key, or None where there is nothing that can be read."""
    try:
        return formats.read_json((cache / f"{name}.json").read_bytes(), kind)
    except (OSError, msgspec.MsgspecError):
        return None


def store(cache: Path, name: str, kept: msgspec.Struct) -> None:
    """Keep golden results. A cache that can't be written costs time, never a result, so that is let pass."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        temporary = cache / f".{name}.{os.getpid()}"
        temporary.write_bytes(msgspec.json.encode(kept))
        temporary.replace(cache / f"{name}.json")
    except OSError:
        return


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
