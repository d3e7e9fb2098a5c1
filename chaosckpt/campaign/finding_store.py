"""Findings on disk: one folder each, complete enough to be mailed and replayed elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from chaosckpt.campaign.findings.evidence import collect
from chaosckpt.campaign.findings.storage_copy import StorageWatch
from chaosckpt.campaign.grouping import Group
from chaosckpt.campaign.journal_files import line
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.errors import UsageError
from chaosckpt.model import formats
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault
from chaosckpt.model.finding import Evidence, Finding, RootCause
from chaosckpt.model.schedule import Schedule
from chaosckpt.report import finding_folder
from chaosckpt.scenario.load import to_toml
from chaosckpt.strategies.drawing import STRATEGY_VERSION

DIRECTORY = "findings"
FILE = "finding.json"


class StoredFinding(msgspec.Struct, frozen=True, kw_only=True):
    """`finding.json`: the finding, the causes under which it was first seen, and the environment it was found in."""

    format: int = formats.RUN
    finding: Finding
    raw: tuple[RootCause, ...] = ()
    environment: dict[str, str] = {}
    evidence: Evidence = Evidence()
    plugins: tuple[str, ...] = ()
    strategy_version: int = STRATEGY_VERSION


class _Outline(msgspec.Struct, frozen=True):
    """As much of `finding.json` as every version writes; format 1 had no number."""

    format: int = 1


class FindingStore:
    """The findings of one run directory."""

    def __init__(
        self, options: FuzzOptions, census: Census, kinds: Mapping[str, type[Fault]], modules: Sequence[str] = ()
    ) -> None:
        """`modules` are what the ranks are known to import."""
        self._options = options
        self._modules = modules
        self._census = census
        self._kinds = tuple(sorted(kinds))
        self._directory = options.run_directory / DIRECTORY

    def folder(self, id_: str) -> Path:
        """Where the finding of this id lies."""
        return self._directory / id_

    def short(self, folder: Path) -> str:
        """The path as a person types it: relative where that is shorter."""
        relative = os.path.relpath(folder)
        return relative if len(relative) < len(str(folder)) else str(folder)

    def read(self) -> Iterator[StoredFinding]:
        """What an earlier part of the campaign has found."""
        for path in sorted(self._directory.glob(f"*/{FILE}")):
            yield read(path.parent)

    def write(
        self,
        finding: Finding,
        first: j.Journal,
        shrunk: j.Journal,
        group: Group,
        schedule: Schedule,
        watch: StorageWatch | None = None,
    ) -> StoredFinding:
        """Write a finding's folder; finding.json last, so that a folder that has it is whole. `watch` saw the shrunk trial's storage,
        whose `schedule` the journal `shrunk` tells of."""
        folder = self.folder(finding.id)
        folder.mkdir(parents=True, exist_ok=True)
        scenario = self._options.scenario
        (folder / "scenario.toml").write_text(to_toml(scenario), encoding="utf-8")
        for name, value in (("schedule.json", finding.schedule), ("shrunk.json", finding.shrunk)):
            (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
        (folder / "census.json").write_bytes(msgspec.json.encode(self._census))
        for name, journal in (("first", first), ("shrunk", shrunk)):
            path = folder / "journals" / f"{name}.jsonl"  # not compressed: it is for people to read
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"".join(line(journal.trial, event) for event in journal.events))
        environment = dict(self._census.environment)
        evidence = collect(folder, scenario, self._census, schedule, finding.violation, shrunk, watch, self._modules)
        stored = StoredFinding(
            finding=finding, raw=tuple(group.raw), environment=environment, evidence=evidence, plugins=self._kinds
        )
        self._write_pages(folder, stored)
        self._write_value(folder, stored)
        return stored

    def remove(self, id_: str) -> None:
        """Remove the folder of a finding in whose place another one is stored."""
        shutil.rmtree(self.folder(id_), ignore_errors=True)

    def recount(self, finding: Finding, raw: tuple[RootCause, ...]) -> StoredFinding:
        """Store a finding with its final count, or with the causes that are known to lead to it by now."""
        folder = self.folder(finding.id)
        stored = read(folder)
        stored = msgspec.structs.replace(stored, finding=finding, raw=raw or stored.raw)
        self._write_value(folder, stored)
        self._write_pages(folder, stored)
        return stored

    def _write_pages(self, folder: Path, stored: StoredFinding) -> None:
        command = finding_folder.reproduce_command(self.short(folder))
        scenario = self._options.scenario
        finding_folder.write(folder, stored.finding, scenario, stored.environment, command, stored.evidence)

    def _write_value(self, folder: Path, stored: StoredFinding) -> None:
        temporary = folder / f"{FILE}.new"
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n")
        temporary.replace(folder / FILE)


def read(folder: Path) -> StoredFinding:
    """The finding in a folder. Raises UsageError for anything else."""
    path = folder / FILE
    try:
        content = path.read_bytes()
        made = formats.read_json(content, _Outline).format
        if made != formats.RUN:
            raise UsageError(
                formats.refusal(str(path), made, formats.RUN, "reproduce it with the version that found it")
            )
        return formats.read_json(content, StoredFinding)
    except FileNotFoundError as error:
        raise UsageError(f"{folder} is no finding's folder: it has no {FILE}; name one of RUN/findings/") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} can't be read: {error}; was it made by another version of chaosckpt?") from error
