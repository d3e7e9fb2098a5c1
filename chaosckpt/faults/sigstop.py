"""One rank is stopped by SIGSTOP and hangs: a wedged node, a paused container, a debugger that was left attached.

What it destroys: nothing by itself. The stopped rank answers nobody; its peers wait for it until their own deadlines
or the harness's grace end, and run their error paths. Then the stopped rank is killed, or (`continues`) goes on as if
nothing had happened, in a job that has given it up: a zombie that writes on.
Survived by: `process-crash`. That the survivors hang is no finding by itself.
How it heals: the job is launched again.
Evidence: the trigger was held, all ranks were at rest, and the process tree was sent the signal.

Where a zombie gets to runs free, so a finding that depends on it carries a measured k of n.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import describe_trigger


class Sigstop(PointFault, frozen=True, tag="sigstop"):
    """Stop the rank of the trigger once its peers are at rest; with `continues`, let it go on when they have ended."""

    ends: ClassVar[Ends] = "rank"
    lingers: ClassVar[bool] = True
    weight: ClassVar[float] = 0.5
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    continues: bool = False

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.stop_rank(self.at.address.rank)
        if self.continues:
            job.await_survivors()
            job.continue_rank(self.at.address.rank)

    def simpler(self) -> Iterable[Sigstop]:
        if self.continues:
            yield msgspec.structs.replace(self, continues=False)

    def describe(self) -> str:
        ending = ", and continued once its peers had ended" if self.continues else ""
        return f"rank {self.at.address.rank} stopped by SIGSTOP {describe_trigger(self.at)}{ending}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Sigstop] | None:
        """A rank without peers that goes on was only slow: it isn't drawn so."""
        if not context.can_inject():
            return None
        return st.builds(cls, context.triggers(), st.booleans() if context.topology.world_size > 1 else st.just(False))
