"""Files can't be read yet: the first opens of a rank are refused, as by a mount whose credentials come late.

What it destroys: nothing.
Survived by: everything must; no guarantee is needed. A job may fail clearly, but it may not begin anew, nor take an older checkpoint.
How it heals: by itself, after `times` opens.
Evidence: the gate answered an open with EACCES.
"""

from __future__ import annotations

import errno

import msgspec
from hypothesis import strategies as st

from chaosckpt.model.fault import Errno, PointFault, Trigger
from chaosckpt.model.phrasing import describe_operation, plural


class NotYetReadable(PointFault, frozen=True, tag="not-yet-readable"):
    """Refuse `times` opens for reading of one rank, from the trigger on."""

    ends = "perhaps"  # the job may end by it, so nothing else is aimed at operations after it
    weight = 0.5  # half as often as an ordinary kind

    times: int = 1

    def decide(self, operation, memory):
        address, at = operation.address, self.at.address
        if address.op != "open_read" or address.rank != at.rank:
            return None
        if not memory.took_effect and address != at:
            return None
        refused = memory.counters.get("refused", 0)
        if refused == self.times:
            return None
        memory.counters["refused"] = refused + 1
        memory.took_effect = True
        return Errno(errno.EACCES)

    def accepts(self, op):
        return op == "open_read"

    def simpler(self):
        return [msgspec.structs.replace(self, times=1)] if self.times > 1 else []

    def describe(self):
        return f"{plural(self.times, 'open')} refused with EACCES, starting with {describe_operation(self.at.address)}"

    @classmethod
    def strategy(cls, context):
        if not context.can_inject(_opens):
            return None
        at = context.points(_opens).map(lambda i: Trigger(context.golden.points[i].address))
        return st.builds(cls, at, st.sampled_from([1, 2, 5]))


def _opens(point):
    return point.address.op == "open_read"
