"""Logs: for a person on the terminal, as JSON lines in the run directory, and from the coordinator to the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import structlog

Entry = MutableMapping[str, Any]
FILE = "log.jsonl"


def to_terminal() -> None:
    """Warnings and errors on standard error, for a person."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def to_run(run: Path, forward: Callable[[dict[str, str]], None]) -> None:
    """Every entry as a JSON line in the run directory. Warnings and errors also go to `forward`, which may reach a terminal."""

    def tell(logger: object, method: str, entry: Entry) -> Entry:
        if entry["level"] in ("warning", "error"):
            forward({key: str(value) for key, value in entry.items() if key not in ("timestamp", "exc_info")})
        return entry

    stream = open(run / FILE, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - open as long as the process runs
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            tell,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )


def repeat(entry: dict[str, str]) -> None:
    """Log here what another process logged."""
    rest = {key: value for key, value in entry.items() if key not in ("event", "level")}
    log = structlog.get_logger("chaosckpt.campaign")
    (log.error if entry.get("level") == "error" else log.warning)(entry["event"], **rest)
