"""Whether the nodes of an arena really see one shared storage: one writes a token, and every other one reads it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tenacity

from chaosckpt.errors import UsageError

PATIENCE_SECONDS = 3.0
"""Some network file systems show a new file to another machine a little later."""


class Witness(Protocol):
    """A node that can write and read a file where it stands."""

    @property
    def machine(self) -> str: ...

    def witness(self, path: str, token: str, write: bool) -> str:
        """Returns what is wrong, or an empty string."""


def check_shared(nodes: Sequence[Witness], directory: Path) -> None:
    """Raises UsageError where a node doesn't see what the first one writes into `directory`."""
    path, token = str(directory / "witness"), secrets.token_hex(16)
    first, *others = nodes
    if wrong := first.witness(path, token, True):
        raise UsageError(f"node 0 ({first.machine}) can't write to shared storage: {wrong}; {_NEXT}")
    patient = tenacity.Retrying(
        stop=tenacity.stop_after_delay(PATIENCE_SECONDS),
        wait=tenacity.wait_fixed(0.1),
        retry=tenacity.retry_if_result(bool),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else "",
    )
    for number, node in enumerate(others, start=1):
        if wrong := patient(node.witness, path, token, False):
            raise UsageError(
                f"node {number} ({node.machine}) doesn't see what node 0 ({first.machine}) wrote to shared storage: {wrong}; {_NEXT}"
            )


_NEXT = "name a directory that every node sees as `shared` in [storage]"
