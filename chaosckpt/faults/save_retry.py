"""The script of this attempt tries a save that raised once more, as many scripts do.

What it destroys: nothing. It is a variant of the job, drawn beside an error that a save may survive, and only where the scenario's
own workload doesn't retry: what a first try has left behind is in the way of the second.
Survived by: everything must; no guarantee is needed.
How it heals: the next attempt is the scenario's own again.
Evidence: the ranks of the attempt were told to retry.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.model.fault import Fault, JobControl


class SaveRetry(Fault, frozen=True, tag="save-retry"):
    """Let every rank of this attempt try a failed save again, once."""

    between: ClassVar[bool] = True
    retries: ClassVar[int] = 1

    def prepare(self, job: JobControl) -> str | None:
        return "failed saves are tried again once in this attempt"

    def describe(self) -> str:
        return "a script that tries a failed save again"
