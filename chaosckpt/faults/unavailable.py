"""A storage tier does not answer for a while: an NFS server that reboots under a hard mount ("not responding, still
trying"), a Lustre target that fails over.

What it destroys: nothing. Every operation on the tier waits, on every node, while the rest of the job goes as far as it
can; then all of them are performed. It brings together what else never meets: every rank with an operation under way.
Survived by: everything must; no guarantee is needed.
How it heals: by itself.
Evidence: the trigger was held, all ranks were at rest, every node was told, and all came to rest again before they went on.

No clock is in it: the tier is away until nobody can do anything without it.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.model.fault import Decision, Hold, JobControl, Memory, TierFault
from chaosckpt.model.operation import MARK, NAMES, STEP, Operation
from chaosckpt.model.phrasing import describe_operation, describe_tier


class Unavailable(TierFault, frozen=True, tag="unavailable"):
    """From the trigger on, every operation on its tier waits until nobody can go on without it; then all go on."""

    weight: ClassVar[float] = 0.7
    triggered_by: ClassVar[frozenset[str]] = NAMES - {MARK, STEP}

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.activate()
        job.await_rest()
        job.activate(False)
        job.resume()

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        return Hold() if memory.took_effect and self.concerns(operation) else None

    def describe(self) -> str:
        return (
            f"{describe_tier(self.tier)} unavailable for a while, starting with {describe_operation(self.at.address)}"
        )
