"""The store: what a campaign keeps in its run directory, written so that a kill at any moment loses at most a trial.

journals/worker-N.jsonl.gz  every event of every trial, as it happens
replays/replays.jsonl.gz    the same for replays while a finding is confirmed and shrunk
trials.jsonl                one line for each finished trial
findings/ID/                one folder for each finding
census.json, summary.json, coordinator.log
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from chaosckpt.model import formats
from chaosckpt.model.finding import RootCause
from chaosckpt.model.verdict import Violation
from chaosckpt.strategies.coverage import CensusPoint

TRIALS = "trials.jsonl"


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a campaign remembers of one trial when its journal is closed. `struck` are census points hit with evidence."""

    index: int
    trial: str
    outcome: Literal["pass", "violation", "inconclusive"]
    reason: str = ""
    violation: Violation | None = None
    cause: RootCause | None = None
    single: bool = False
    attempts: int = 1
    faults: int = 0
    topologies: int = 1
    recovery_fault: bool = False
    struck: tuple[CensusPoint, ...] = ()
    harness_trouble: bool = False
    gaps: tuple[str, ...] = ()
    """As in its verdict."""
    refused: tuple[str, ...] = ()
    """What the gate did not let the job do, in sentences."""


class TrialLog:
    """`trials.jsonl`: appended by any worker, read back by `--resume`."""

    def __init__(self, run: Path) -> None:
        self._path = run / TRIALS
        self._lock = threading.Lock()

    def read(self) -> Iterator[TrialRecord]:
        """Every finished trial, the last line of each index; torn lines are left out."""
        found: dict[int, TrialRecord] = {}
        if self._path.exists():
            for line in self._path.read_bytes().split(b"\n"):
                try:
                    record = formats.read_json(line, TrialRecord)
                except msgspec.DecodeError:
                    continue
                found[record.index] = record
        yield from found.values()

    def append(self, record: TrialRecord) -> None:
        """Add one finished trial."""
        with self._lock, open(self._path, "ab", buffering=0) as stream:
            if stream.tell() and not self._ends_with_newline():
                stream.write(b"\n")
            stream.write(msgspec.json.encode(record) + b"\n")

    def _ends_with_newline(self) -> bool:
        with open(self._path, "rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"\n"
