"""A storage tier becomes read-only: a file system that found an error and protects itself, a quota of a project that ran
out for good, an export that was changed.

What it destroys: nothing that was written before.
Survived by: everything must; no guarantee is needed. The target may let the save fail, clearly, but may not acknowledge it.
How it heals: at the next attempt.
Evidence: the trigger was held, all ranks were at rest, and every node was told before any went on; what would have
written since then has failed with EROFS, that operation first of all.
"""

from __future__ import annotations

import errno
from typing import ClassVar

from chaosckpt.model.fault import Decision, Ends, Errno, JobControl, Memory, TierFault
from chaosckpt.model.operation import WRITING, Operation
from chaosckpt.model.phrasing import describe_operation, describe_tier

REFUSED = WRITING - {"close", "sync"}
"""What a read-only file system refuses; descriptors that were open for writing write no more, either."""


class ReadOnly(TierFault, frozen=True, tag="read-only"):
    """From the trigger to the attempt's end, whatever would write to the trigger's tier fails with EROFS, on every node."""

    ends: ClassVar[Ends] = "perhaps"
    weight: ClassVar[float] = 0.7
    triggered_by: ClassVar[frozenset[str]] = REFUSED

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.activate()
        job.resume()

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        refused = memory.took_effect and operation.address.op in REFUSED and self.concerns(operation)
        return Errno(errno.EROFS) if refused else None

    def describe(self) -> str:
        return f"{describe_tier(self.tier)} read-only until the attempt ends, starting with {describe_operation(self.at.address)}"
