"""How faults are told to people: one phrase each, without addresses."""

from __future__ import annotations

import msgspec
import pytest

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
from chaosckpt.faults.truncation import EVERYTHING, Truncation
from chaosckpt.faults.unavailable import Unavailable
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.topology import Topology
from tests.faults.operations import address, trigger
from tests.strategies.kinds import KINDS

FILE = "shared:step_4/__1_0.distcp"
OPENING = trigger("open_write")
SAVER = Trigger(msgspec.structs.replace(address(), role="child"))
TOLD: list[tuple[Fault, str]] = [
    (BitFlip(FILE, 7, 3), "bit 3 of byte 7 of step_4/__1_0.distcp flipped at rest"),
    (BitFlip("local:a", node=1), "bit 0 of byte 0 of a on node-local storage of node 1 flipped at rest"),
    (Cut((trigger(),)), "whole job killed before rank 1's first write to step_4/__1_0.distcp"),
    (
        Cut((trigger(rank=0, when="torn", torn_bytes=1), OPENING), ((0, 3),)),
        "whole job killed after 1 byte of rank 0's first write to step_4/__1_0.distcp"
        " and before rank 1 opened step_4/__1_0.distcp for writing, rank 0 about to train step 3",
    ),
    (StorageError(trigger()), "rank 1's first write to step_4/__1_0.distcp failed with EIO"),
    (StorageError(OPENING, "EMFILE"), "rank 1 opening step_4/__1_0.distcp for writing failed with EMFILE"),
    (
        HoldUntil(trigger(), trigger(rank=0, when="after", nth=1)),
        "rank 1's first write to step_4/__1_0.distcp held until after rank 0's second write to step_4/__1_0.distcp",
    ),
    (Latency(trigger(), 50), "delay of 50 ms before rank 1's first write to step_4/__1_0.distcp"),
    (LocalStorageLoss(1), "node-local storage of node 1 emptied before the restart"),
    (Mtimes(), "modification times on shared storage put in reverse order before the restart"),
    (Mtimes("local", 1), "modification times on node-local storage of node 1 put in reverse order before the restart"),
    (
        NodeLoss(trigger(when="after"), 1),
        "failure group 1 lost with its node-local storage after rank 1's first write to step_4/__1_0.distcp",
    ),
    (
        NotVisible(Trigger(address("list", "shared:.")), "shared:step_4", 1),
        "step_4 invisible to rank 1 for 1 lookup, starting with rank 1's first listing of the shared storage directory",
    ),
    (
        ReadOnly(OPENING),
        "shared storage read-only until the attempt ends, starting with rank 1 opening step_4/__1_0.distcp for writing",
    ),
    (
        SaverKill(SAVER),
        "saver process of rank 1 killed by SIGKILL before the first write to step_4/__1_0.distcp by rank 1's saver process",
    ),
    (SaveRetry(), "a script that tries a failed save again"),
    (Stall(trigger()), "rank 1's first write to step_4/__1_0.distcp blocked until the other ranks had given up"),
    (SharedStorageLoss(), "shared storage emptied before the restart"),
    (ShortWrite(trigger()), "short write: only 1 byte of rank 1's first write to step_4/__1_0.distcp written"),
    (Sigkill(trigger()), "rank 1 killed by SIGKILL before rank 1's first write to step_4/__1_0.distcp"),
    (
        Sigstop(trigger(), continues=True),
        "rank 1 stopped by SIGSTOP before rank 1's first write to step_4/__1_0.distcp, and continued once its peers had ended",
    ),
    (
        Sigterm(trigger(), everyone=False),
        "SIGTERM to rank 1 before rank 1's first write to step_4/__1_0.distcp, and SIGKILL to all after 2000 ms of grace",
    ),
    (Space(1), "shared storage full (ENOSPC) once the ranks of a node have filled 1 byte"),
    (
        StaleSave(("shared:step_9",), ("shared:step_9/a",)),
        "remains of an interrupted save of a longer run put on shared storage: step_9, step_9/a",
    ),
    (Truncation(FILE), "last byte of step_4/__1_0.distcp cut off at rest"),
    (Truncation(FILE, 5), "last 5 bytes of step_4/__1_0.distcp cut off at rest"),
    (Truncation("local:a", EVERYTHING, 1), "a on node-local storage of node 1 emptied at rest"),
    (
        Unavailable(trigger()),
        "shared storage unavailable for a while, starting with rank 1's first write to step_4/__1_0.distcp",
    ),
    (WorldSize(Topology((2, 1))), "job restarted as 2+1 (3 ranks)"),
]


@pytest.mark.parametrize(("fault", "phrase"), TOLD, ids=[fault.kind for fault, _ in TOLD])
def test_a_fault_is_told_in_one_phrase(fault, phrase):
    """Numbers agree with their nouns, operations are told as a person would, and one is one."""
    assert fault.describe() == phrase


def test_every_kind_is_told():
    """No kind is left out above."""
    assert {fault.kind for fault, _ in TOLD} == set(KINDS)
