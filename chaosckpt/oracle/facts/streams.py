"""Random streams after a change of the number of ranks, and whether a recovery brought back exactly what was captured."""

from __future__ import annotations

from dataclasses import dataclass

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import RecoveryStarted
from chaosckpt.oracle.facts.lineage import began_from_nothing, source, states_before
from chaosckpt.oracle.facts.recovery import Recovery, leaked
from chaosckpt.oracle.facts.saves import Save
from chaosckpt.oracle.facts.view import TargetView


@dataclass(frozen=True)
class StreamFault:
    """What is wrong with one rank's random streams, beginning with `stream`."""

    rank: int
    stream: str
    expected: str
    seen: str
    slug: str


def resumed_in_another_world(recovery: Recovery) -> Save | None:
    """The save that all ranks resumed from, where another number of ranks had captured it."""
    save = source(recovery)
    return save if save is not None and save.topology.world_size != recovery.attempt.world_size else None


def stream_faults(view: TargetView, recovery: Recovery) -> list[StreamFault]:
    """At most one entry a rank, lowest first; empty where the world is the one of the capture.

    Recovery sets every stream: one that is as it was before is the new process's own. Streams are pairwise distinct over the
    ranks. None repeats a state that the lineage went through, except that a rank which exists before and after may have its own
    back; it must, where the target claims to keep them.
    """
    save = resumed_in_another_world(recovery)
    if save is None:
        return []
    live = {at.event.rank: at.event.digest for at in recovery.loaded}
    used: dict[tuple[str, str], str] = {}
    for who, digest in states_before(view, save):
        for stream, value in digest.rng.items():
            used.setdefault((stream, value), who)
    found = []
    for rank, digest in sorted(live.items()):
        fault = (
            _untouched(recovery, rank, digest)
            or _twin(rank, digest, live)
            or _used(rank, digest, save, used)
            or _lost(view, rank, digest, save)
        )
        if fault is not None:
            found.append(fault)
    return found


def _untouched(recovery: Recovery, rank: int, digest: StateDigest) -> StreamFault | None:
    started = recovery.attempt.tracks[rank].first(RecoveryStarted)
    before = {} if started is None else started.event.rng
    left = sorted(name for name, value in before.items() if digest.rng.get(name) == value)
    if not left:
        return None
    seen = _list([f"{stream} is still as the new process began with it" for stream in left])
    return StreamFault(rank, left[0], f"a {left[0]} stream that recovery has restored or derived", seen, "unset")


def _twin(rank: int, digest: StateDigest, live: dict[int, StateDigest]) -> StreamFault | None:
    twins = [
        (stream, other)
        for stream, value in sorted(digest.rng.items())
        for other in range(rank)
        if other in live and live[other].rng.get(stream) == value
    ]
    if not twins:
        return None
    stream = twins[0][0]
    seen = _list([f"{stream} equals that of rank {other}" for stream, other in twins])
    return StreamFault(rank, stream, f"a {stream} stream of its own, different from every other rank's", seen, "shared")


def _used(rank: int, digest: StateDigest, save: Save, used: dict[tuple[str, str], str]) -> StreamFault | None:
    captured = save.digests.get(rank)
    own = {} if captured is None else captured.rng
    repeated = [
        (stream, used[stream, value])
        for stream, value in sorted(digest.rng.items())
        if (stream, value) in used and own.get(stream) != value
    ]
    if not repeated:
        return None
    stream = repeated[0][0]
    seen = _list([f"{stream} equals the stream of {who}, which was already used" for stream, who in repeated])
    return StreamFault(rank, stream, f"a {stream} stream that was not used before", seen, "repeated")


def _lost(view: TargetView, rank: int, digest: StateDigest, save: Save) -> StreamFault | None:
    captured = save.digests.get(rank)
    if not view.start.keeps_rng or captured is None:
        return None
    lost = sorted(name for name, value in captured.rng.items() if digest.rng.get(name) != value)
    if not lost:
        return None
    expected = f"its own {lost[0]} stream as saved at step {save.step}, which the target promises to keep"
    return StreamFault(rank, lost[0], expected, f"differing streams: {', '.join(lost)}", "lost")


def _list(phrases: list[str]) -> str:
    return "; ".join(phrases)


def exact(view: TargetView, recovery: Recovery) -> bool:
    """True when every rank holds exactly one save's state, or every rank began from nothing and holds nothing of any
    save: only then can what is trained from there on be compared."""
    if began_from_nothing(recovery):
        return all(leaked(view, recovery, answer) is None for answer in recovery.empty)
    if recovery.empty or len(recovery.loaded) < recovery.attempt.world_size:
        return False
    identified = {rank for identity in recovery.identities if identity.exact for rank in identity.holder.ranks}
    return len(identified) == recovery.attempt.world_size and not stream_faults(view, recovery)
