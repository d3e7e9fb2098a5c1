"""The built-in fault kinds by name, without asking for entry points."""

from __future__ import annotations

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.short_write import ShortWrite
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigterm import Sigterm
from chaosckpt.faults.space import Space
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.fault import Fault

KINDS: dict[str, type[Fault]] = {
    kind.__struct_config__.tag: kind  # type: ignore[attr-defined]
    for kind in (
        Cut,
        Latency,
        LocalStorageLoss,
        NodeLoss,
        SharedStorageLoss,
        ShortWrite,
        Sigkill,
        Sigterm,
        Space,
        StorageError,
        WorldSize,
    )
}
