"""Whether a recovery brought back exactly what was captured, so that what is trained from there on can be compared."""

from __future__ import annotations

from chaosckpt.oracle.lineage import began_from_nothing
from chaosckpt.oracle.recovery import Recovery, leaked
from chaosckpt.oracle.streams import stream_faults
from chaosckpt.oracle.view import TrialView


def exact(view: TrialView, recovery: Recovery) -> bool:
    """True when every rank holds exactly one save's state, or every rank began from nothing and holds nothing of any
    save."""
    if began_from_nothing(recovery):
        return all(leaked(view, recovery, answer) is None for answer in recovery.empty)
    if recovery.empty or len(recovery.loaded) < recovery.attempt.world_size:
        return False
    identified = {rank for identity in recovery.identities if identity.exact for rank in identity.subject.ranks}
    return len(identified) == recovery.attempt.world_size and not stream_faults(view, recovery)
