"""The built-in fault kinds by name, without asking for entry points."""

from __future__ import annotations

from chaosckpt.faults.bit_flip import BitFlip
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.hold_until import HoldUntil
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.mtimes import Mtimes
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.not_visible import NotVisible
from chaosckpt.faults.read_only import ReadOnly
from chaosckpt.faults.save_retry import SaveRetry
from chaosckpt.faults.saver_kill import SaverKill
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.short_write import ShortWrite
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigstop import Sigstop
from chaosckpt.faults.sigterm import Sigterm
from chaosckpt.faults.space import Space
from chaosckpt.faults.stale_save import StaleSave
from chaosckpt.faults.stall import Stall
from chaosckpt.faults.truncation import Truncation
from chaosckpt.faults.unavailable import Unavailable
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.fault import Fault

KINDS: dict[str, type[Fault]] = {
    "cut": Cut,
    "errno": StorageError,
    "latency": Latency,
    "local-storage-loss": LocalStorageLoss,
    "node-loss": NodeLoss,
    "shared-storage-loss": SharedStorageLoss,
    "short-write": ShortWrite,
    "sigkill": Sigkill,
    "sigterm": Sigterm,
    "space": Space,
    "bit-flip": BitFlip,
    "hold-until": HoldUntil,
    "mtimes": Mtimes,
    "not-visible": NotVisible,
    "read-only": ReadOnly,
    "save-retry": SaveRetry,
    "saver-kill": SaverKill,
    "sigstop": Sigstop,
    "stale-save": StaleSave,
    "stall": Stall,
    "truncation": Truncation,
    "unavailable": Unavailable,
    "world-size": WorldSize,
}
