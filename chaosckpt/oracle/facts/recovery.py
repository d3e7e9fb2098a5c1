"""A recovery as the invariants judge it: what is required of it, what each rank said, and what the live objects show."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import Recovered
from chaosckpt.oracle.facts.identity import Capture, Identity, holders, holds_whole, identify, of_rank
from chaosckpt.oracle.facts.requirement import Requirement, requirement
from chaosckpt.oracle.facts.saves import Save, saves
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView, Track


@dataclass(frozen=True)
class Recovery:
    """The recovery of one attempt.

    `loaded` and `empty` are the ranks' answers: a step, or Nothing. `identities` holds what could be identified: one
    entry a rank where every tensor is whole, one for the world where tensors are sharded; none where a sharded world
    is incomplete or disagrees.
    """

    attempt: TargetAttempt
    requirement: Requirement
    captures: tuple[Capture, ...]
    loaded: tuple[At[Recovered], ...]
    empty: tuple[At[Recovered], ...]
    identities: tuple[Identity, ...]

    @property
    def failed(self) -> tuple[Track, ...]:
        """Ranks whose `recover` raised, or whose process ended by itself inside it."""
        return tuple(track for track in self.attempt.tracks if track.phase in ("raised", "exited"))

    def answer(self, rank: int) -> At[Recovered]:
        """What this rank's `recover` returned. Raises LookupError where it didn't."""
        found = self.attempt.tracks[rank].recovered
        if found is None:
            raise LookupError(f"rank {rank} did not recover in attempt {self.attempt.number}")
        return found

    def shown(self, rank: int) -> tuple[Save, ...]:
        """The saves that the live state of a rank equals best; empty where it could not be identified."""
        return next((identity.saves for identity in self.identities if rank in identity.holder.ranks), ())


@functools.lru_cache(maxsize=4)
def recoveries(view: TargetView) -> tuple[Recovery, ...]:
    """The recovery of every attempt in which a rank began one, in order."""
    known = captures(view)
    found = []
    for attempt in view.attempts:
        if any(track.phase != "absent" for track in attempt.tracks):
            earlier = tuple(capture for capture in known if capture.save.attempt < attempt.number)
            found.append(_recovery(view, attempt, earlier))
    return tuple(found)


@functools.lru_cache(maxsize=4)
def captures(view: TargetView) -> tuple[Capture, ...]:
    """What was captured for every save, oldest first."""
    return tuple(Capture(save) for save in saves(view))


def _recovery(view: TargetView, attempt: TargetAttempt, earlier: tuple[Capture, ...]) -> Recovery:
    loaded = tuple(at for at in attempt.recovered if at.event.chosen is not None)
    empty = tuple(at for at in attempt.recovered if at.event.chosen is None)
    digests = [at.event.digest for at in loaded]
    # A sharded world whose ranks chose different steps is no one state; that they differ is judged by rank-agreement.
    one = len({at.event.chosen for at in loaded}) == 1 and not empty
    judged = digests if one or all(holds_whole(digest) for digest in digests) else []
    said = {at.event.rank: at.event.chosen for at in loaded if at.event.chosen is not None}
    found = holders(judged) if judged else []
    identities = tuple(identify(holder, earlier, {said[rank] for rank in holder.ranks}) for holder in found)
    return Recovery(attempt, requirement(view, attempt), earlier, loaded, empty, identities)


def pristine(view: TargetView) -> StateDigest | None:
    """The state at step 0 as a rank of the first attempt showed it after recovering nothing; None where none did."""
    first = view.attempts[0] if view.attempts else None
    if first is None:
        return None
    return next((at.event.digest for at in first.recovered if at.event.chosen is None), None)


def leaked(view: TargetView, recovery: Recovery, answer: At[Recovered]) -> tuple[str, Save] | None:
    """The name of a parameter that a rank holds from a save though it said Nothing, with that save."""
    fresh = pristine(view)
    if fresh is None or answer.event.digest is fresh:
        return None
    begun = of_rank(fresh).tensors
    for (component, name), value in sorted(of_rank(answer.event.digest).tensors.items()):
        # A part of a sharded tensor has another sum in another world; only whole tensors can be told from the first
        # ones.
        if component != "params" or begun.get((component, name)) == value:
            continue
        source = next((c for c in reversed(recovery.captures) if c.has_tensor((component, name), value)), None)
        if source is not None:
            return name, source.save
    return None
