"""The journals of a run, read back trial by trial, whatever was cut off while it was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaosckpt.campaign.journal_files import SUFFIX, lines
from chaosckpt.errors import UsageError
from chaosckpt.model import formats
from chaosckpt.model.journal import AnyEvent, Journal, TrialEnded, TrialStarted

DIRECTORY = "journals"


class Line(msgspec.Struct, frozen=True):
    """One line of a journal file: which trial, and what happened."""

    trial: str
    event: AnyEvent


class _Begun(msgspec.Struct, frozen=True, tag_field="event", tag="trialstarted"):
    """As much of a trial's first event as every version writes; format 1 had no number."""

    format: int = 1


class _FirstLine(msgspec.Struct, frozen=True):
    event: _Begun


class Numbered(NamedTuple):
    """A trial's journal, and where each of its events stands, as `file:line`."""

    journal: Journal
    places: tuple[str, ...]


def read(run: Path) -> Iterator[Numbered]:
    """Every complete trial of a run, file by file, in the order in which they ended.

    A trial that was begun again (after trouble of the harness, or in a resumed campaign) appears once for each end. Trials without
    an end, and lines that were torn when the harness was killed, are left out. Raises UsageError for a file of another format.
    """
    for path in sorted((run / DIRECTORY).iterdir() if (run / DIRECTORY).is_dir() else ()):
        if path.name.endswith((".jsonl", SUFFIX)):
            yield from _read_file(path)


def _read_file(path: Path) -> Iterator[Numbered]:
    events: dict[str, list[AnyEvent]] = {}
    places: dict[str, list[str]] = {}
    _refuse_other_format(path)
    for number, raw in enumerate(lines(path), 1):
        try:
            line = formats.read_json(raw, Line)
        except msgspec.MsgspecError:
            continue
        if isinstance(line.event, TrialStarted):
            events[line.trial], places[line.trial] = [], []
        if line.trial not in events:
            continue
        events[line.trial].append(line.event)
        places[line.trial].append(f"{DIRECTORY}/{path.name}:{number}")
        if isinstance(line.event, TrialEnded):
            yield Numbered(Journal(tuple(events.pop(line.trial))), tuple(places.pop(line.trial)))


def _refuse_other_format(path: Path) -> None:
    """One version writes a whole file, so that the first trial that begins in it tells for all."""
    for raw in lines(path):
        try:
            made = formats.read_json(raw, _FirstLine).event.format
        except msgspec.MsgspecError:
            continue  # a torn line, or another event
        if made != formats.RUN:
            next_step = "judge it with the version that wrote it"
            raise UsageError(formats.refusal(f"the journal {path}", made, formats.RUN, next_step))
        return
