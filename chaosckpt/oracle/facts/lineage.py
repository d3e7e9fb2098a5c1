"""Lineages: from which saves of which attempts a state descends, back to a start from nothing, and what was trained on the way."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import Finished, Reference, ReferenceStep, SaveStarted, StepTrace
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.saves import Save, saves
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView


@dataclass(frozen=True)
class Link:
    """One attempt of a lineage. It resumed from `source` (None: it began at step 0), and `upto` is the save of its own
    from which the next link went on (None in the newest link)."""

    attempt: TargetAttempt
    source: Save | None
    upto: Save | None = None

    @property
    def begins_after(self) -> int:
        """The step that it resumed from."""
        return 0 if self.source is None else self.source.step


@dataclass(frozen=True)
class Lineage:
    """The links, oldest first. `rooted`: the first one began from nothing, so that no part of the lineage is unknown."""

    links: tuple[Link, ...]
    rooted: bool


@functools.lru_cache(maxsize=8)  # each entry keeps the whole trial
def recovery_of(view: TargetView, attempt: int) -> Recovery | None:
    """The recovery of this attempt, if a rank began one."""
    return next((recovery for recovery in recoveries(view) if recovery.attempt.number == attempt), None)


def source(recovery: Recovery) -> Save | None:
    """The save that every rank's live state shows best, the newest of equals; None where there is no such one."""
    if recovery.empty or len(recovery.loaded) < recovery.attempt.world_size:
        return None
    shown = [{save.key: save for save in recovery.shown(at.event.rank)} for at in recovery.loaded]
    common = set.intersection(*(set(of_rank) for of_rank in shown)) if shown else set()
    return shown[0][max(common)] if common else None


def began_from_nothing(recovery: Recovery) -> bool:
    """True when every rank's recovery said Nothing."""
    return len(recovery.empty) == recovery.attempt.world_size


@functools.lru_cache(maxsize=8)  # each entry keeps the whole trial
def lineage(view: TargetView, attempt: int) -> Lineage:
    """Of this attempt, as far back as its recoveries can be identified."""
    links: list[Link] = []
    number, upto = attempt, None
    while True:
        recovery = recovery_of(view, number)
        if recovery is None:
            return Lineage(tuple(links), rooted=False)
        begun = source(recovery)
        if begun is None and not began_from_nothing(recovery):
            return Lineage(tuple(links), rooted=False)
        links.insert(0, Link(recovery.attempt, begun, upto))
        if begun is None:
            return Lineage(tuple(links), rooted=True)
        number, upto = begun.attempt, begun


def states_before(view: TargetView, save: Save) -> Iterator[tuple[str, StateDigest]]:
    """Every state that the lineage of a save went through and the journal knows, in words and as a digest: what its
    attempts began with, what they captured on the way, and the save itself."""
    for link in lineage(view, save.attempt).links:
        upto = save if link.upto is None else link.upto
        for answer in link.attempt.recovered:
            yield f"rank {answer.event.rank} at the start of attempt {link.attempt.number}", answer.event.digest
        for own in saves(view):
            if own.attempt == link.attempt.number and own.step <= upto.step:
                for rank, digest in sorted(own.digests.items()):
                    yield f"rank {rank} at {own}", digest


@dataclass(frozen=True)
class Trained:
    """One step that one rank trained, with the index of the event that tells it."""

    attempt: int
    rank: int
    trace: StepTrace
    index: int


def trained(attempt: TargetAttempt, upto: Save | None) -> list[Trained]:
    """The steps that the ranks of an attempt told, up to one of its saves, or up to the end.

    A rank that ended before it began that save has told its steps up to an earlier one.
    """
    found = []
    for track in attempt.tracks:
        last = None if upto is None else upto.started.get(track.rank)
        told: Iterable[At[SaveStarted] | At[Finished]] = [*track.all(SaveStarted), *track.all(Finished)]
        for at in told:
            if last is None or at.index <= last:
                found += [
                    Trained(attempt.number, track.rank, trace, at.index)
                    for trace in at.event.trained
                    if upto is None or trace.step <= upto.step
                ]
    return found


@functools.lru_cache(maxsize=4)
def references(view: TargetView) -> dict[int, At[Reference]]:
    """The reference of each attempt that has one."""
    return {at.event.attempt: at for at in view.all(Reference)}


@functools.lru_cache(maxsize=4)
def _expected(view: TargetView) -> dict[tuple[int, int], ReferenceStep]:
    return {(number, step.step): step for number, at in references(view).items() for step in at.event.steps}


def expected(view: TargetView, attempt: int, step: int) -> ReferenceStep | None:
    """What a reference says of a step: that of this attempt, else that of any other, as the samples are the same."""
    known = _expected(view)
    if (attempt, step) in known:
        return known[attempt, step]
    return next((known[number, step] for number in references(view) if (number, step) in known), None)
