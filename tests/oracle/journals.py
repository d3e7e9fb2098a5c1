"""Journals written by hand, in the words in which one tells what happened in a trial of a target or of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

import msgspec

from chaosckpt import oracle
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest, combine, fingerprint, part_fingerprints
from chaosckpt.model.guarantee import GUARANTEES, Guarantee
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.scenario import Scenario, TargetSettings
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.check import BUILT_IN
from tests.oracle.states import STEPS, loss, share, state

SCENARIO = Scenario(name="told", target=TargetSettings(use="told"))


def operation(rank: int = 0, op: str = "write", path: str = "shared:step-000004/__0_0.distcp") -> Operation:
    address = Address(rank=rank, role="main", op=op, path=path, incarnation=1, nth=0)
    return Operation(address=address, sequence=7, raw=path)


class JournalBuilder:
    """A trial told event by event, whatever is tested. Ranks of the current attempt do things together unless `ranks` names some."""

    scenario = SCENARIO
    struck = operation()
    """Where a fault strikes unless it is said."""

    def __init__(
        self, ranks: Sequence[int], faults: Sequence[Sequence[str]], guarantees: Iterable[Guarantee], **started: object
    ) -> None:
        plan: dict[str, object] = {"attempts": [{"faults": [{"kind": kind} for kind in kinds]} for kinds in faults]}
        started = {
            "trial": "1:17",
            "schedule": plan,
            "guarantees": tuple(sorted(guarantees)),
            "scenario": "told",
            **started,
        }
        self.events: list[j.AnyEvent] = [j.TrialStarted(**started)]  # type: ignore[arg-type]
        self.ranks = tuple(ranks)
        self.number = -1

    @property
    def world(self) -> int:
        return sum(self.ranks)

    @property
    def resumes(self) -> bool:
        """Whether the next attempt is told to resume."""
        raise NotImplementedError

    def all(self, ranks: Iterable[int] | None) -> Iterable[int]:
        return range(self.world) if ranks is None else ranks

    def attempt(self, ranks: Sequence[int] | None = None, *, closing: bool = False) -> Self:
        self.number += 1
        self.ranks = self.ranks if ranks is None else tuple(ranks)
        intent: j.Intent = "resume" if self.resumes else "start"
        self.events.append(j.AttemptStarted(attempt=self.number, ranks=self.ranks, intent=intent, closing=closing))
        return self

    def exits(
        self,
        code: int | None = 1,
        *,
        by: str = "self",
        ranks: Iterable[int] | None = None,
        tail: str = "",
        signal: int | None = None,
    ) -> Self:
        for rank in self.all(ranks):
            sent = 9 if by != "self" else signal
            exit_code = code if sent is None else None
            self.events.append(
                j.RankExited(attempt=self.number, rank=rank, exit_code=exit_code, signal=sent, by=by, stderr_tail=tail)  # type: ignore[arg-type]
            )
        return self

    def fault(
        self,
        kind: str = "cut",
        index: int = 0,
        at: Operation | None = None,
        label: str = "",
        *,
        needs: tuple[Guarantee, ...] = (),
        between: bool = False,
    ) -> Self:
        """A fault lands, at no operation unless one is given; `between` this attempt and the next one."""
        self.events.append(
            j.FaultInjected(
                attempt=max(self.number, 0) + between,
                fault=index,
                kind=kind,
                evidence="it struck",
                operation=at,
                label=label,
                needs=needs,
            )
        )
        return self

    def kills(self) -> Self:
        """All ranks are ended by a fault, and with them the attempt."""
        return self.exits(by="fault").ends("killed")

    def cut(self, at: Operation | None = None, label: str = "persist of save 4") -> Self:
        """The whole job is killed at an operation."""
        return self.fault("cut", at=at or self.struck, label=label).kills()

    def injects(self, error: str = "EIO", at: Operation | None = None, label: str = "load of the recovery") -> Self:
        struck = at or operation(op="read")
        rank = struck.address.rank
        self.events.append(j.ErrorInjected(attempt=self.number, rank=rank, error=error, operation=struck))
        return self.fault("errno", at=struck, label=label)

    def mutates(self, path: str, what: str = "bit 3 of byte 100 flipped", *, damages: bool = True) -> Self:
        """Something is done to a file between this attempt and the next one."""
        self.events.append(
            j.StorageMutated(attempt=self.number + 1, tier="shared", node=None, path=path, what=what, damages=damages)
        )
        return self

    def destroys(self, tier: str, node: int | None, cause: str, index: int = 0, *, next_attempt: bool = True) -> Self:
        """Storage is lost, by default between this attempt and the next one."""
        attempt = self.number + next_attempt
        self.events.append(j.StorageDestroyed(attempt=attempt, tier=tier, node=node, files=3, cause=cause))  # type: ignore[arg-type]
        self.events.append(j.FaultInjected(attempt=attempt, fault=index, kind=cause, evidence="3 files deleted"))
        return self

    def ends(self, outcome: str, *, confirmed: bool = False, operations: Sequence[int] = ()) -> Self:
        self.events.append(
            j.AttemptEnded(attempt=self.number, outcome=outcome, confirmed=confirmed, operations=tuple(operations))  # type: ignore[arg-type]
        )
        return self

    def journal(self) -> j.Journal:
        return j.Journal((*self.events, j.TrialEnded()))

    def verdict(self, *more: oracle.Invariant) -> Verdict:
        return oracle.check(self.scenario, self.journal(), (*BUILT_IN, *more))

    def explained(self, *more: oracle.Invariant) -> str:
        return oracle.explain(self.scenario, self.journal(), (*BUILT_IN, *more))


class TargetJournal(JournalBuilder):
    """A trial of a target. What a rank holds after a step is `state` of that step."""

    def __init__(
        self,
        ranks: Sequence[int] = (1, 1),
        *,
        faults: Sequence[Sequence[str]] = (),
        guarantees: Iterable[Guarantee] = GUARANTEES,
        sharded: bool = False,
        **started: object,
    ) -> None:
        defaults = {
            "total_steps": STEPS,
            "fresh_start": "refused",
            "keeps_rng": False,
            "outstanding": 1,
            "at_end": "await",
        }
        super().__init__(ranks, faults, guarantees, **{**defaults, **started})
        self.sharded = sharded
        self.variant = ""
        self._acked: dict[tuple[int, int], set[int]] = {}
        self._resumes = False
        self.variants: list[str] = []
        self.share = share
        self.loss = loss
        self._told: dict[int, int] = {}

    @property
    def resumes(self) -> bool:
        """True once some save was acknowledged by all."""
        return self._resumes

    def attempt(self, ranks: Sequence[int] | None = None, *, closing: bool = False, variant: str = "") -> Self:
        """Launch the job. `variant` marks its training."""
        self.variant = variant
        self.variants.append(variant)
        return super().attempt(ranks, closing=closing)

    def state(self, step: int, rank: int, **more: object) -> StateDigest:
        variant = str(more.get("variant", self.variant))
        attempt = more.get("attempt", self.number)
        assert isinstance(attempt, int)
        return state(step, rank, self.world, attempt=attempt, variant=variant, sharded=self.sharded)

    def _trained(self, step: int, rank: int) -> tuple[j.StepTrace, ...]:
        """The steps that a rank has trained since it last told of any."""
        since, self._told[rank] = self._told.get(rank, 0), step
        return tuple(
            j.StepTrace(s, self.share(s, rank, self.world), self.loss(s, rank, self.world))
            for s in range(since + 1, step + 1)
        )

    def starts_save(
        self,
        step: int,
        ranks: Iterable[int] | None = None,
        but: Callable[[StateDigest], StateDigest] = lambda digest: digest,
    ) -> Self:
        for rank in self.all(ranks):
            captured = but(self.state(step, rank))
            trained = self._trained(step, rank)
            self.events.append(
                j.SaveStarted(attempt=self.number, rank=rank, step=step, digest=captured, trained=trained)
            )
        return self

    def has_outstanding(self, step: int, saves: Sequence[int], ranks: Iterable[int] | None = None) -> Self:
        for rank in self.all(ranks):
            self.events.append(j.Outstanding(attempt=self.number, rank=rank, step=step, saves=tuple(saves)))
        return self

    def fails_save(self, step: int, ranks: Iterable[int] | None = None) -> Self:
        for rank in self.all(ranks):
            self.events.append(
                j.SaveFailed(
                    attempt=self.number, rank=rank, step=step, where="save", error_type="OSError", message="no space"
                )
            )
        return self

    def leaves(self, abandoned: dict[str, int], bound_bytes: int) -> Self:
        """What lies on storage after the trial."""
        total = 5000 + sum(abandoned.values())
        self.events.append(
            j.StorageLeft(
                attempt=self.number,
                files=4 + len(abandoned),
                bytes=total,
                abandoned=tuple(abandoned.items()),
                bound_bytes=bound_bytes,
            )
        )
        return self

    def acknowledges(self, step: int, level: str = "shared", ranks: Iterable[int] | None = None) -> Self:
        for rank in self.all(ranks):
            self.events.append(j.Acknowledged(attempt=self.number, rank=rank, step=step, level=level))
            acked = self._acked.setdefault((self.number, step), set())
            acked.add(rank)
            self._resumes = self._resumes or len(acked) == self.world
        return self

    def saves(self, step: int, level: str = "shared") -> Self:
        return self.starts_save(step).acknowledges(step, level)

    def begins_recovery(self, ranks: Iterable[int] | None = None) -> Self:
        for rank in self.all(ranks):
            built = self.state(0, rank, variant="").rng
            self.events.append(j.RecoveryStarted(attempt=self.number, rank=rank, rng=built))
        return self

    def recovers(
        self,
        chosen: int | None,
        *,
        shown: int | None = None,
        ranks: Iterable[int] | None = None,
        but: Callable[[StateDigest], StateDigest] = lambda digest: digest,
        **more: object,
    ) -> Self:
        """Recover `chosen` (None: Nothing) with the live state of the step `shown` (the same), changed by `but`."""
        step = chosen if shown is None else shown
        self.begins_recovery(ranks)
        for rank in self.all(ranks):
            live = but(self.state(step or 0, rank, **more))
            self._told[rank] = live.step
            self.events.append(j.Recovered(attempt=self.number, rank=rank, chosen=chosen, digest=live))
        return self

    def raises(
        self, where: str, error: str, message: str, *, ranks: Iterable[int] | None = None, code: int = 1, step: int = 4
    ) -> Self:
        for rank in self.all(ranks):
            at = None if where == "recover" else step
            self.events.append(
                j.Raised(attempt=self.number, rank=rank, where=where, step=at, error_type=error, message=message)
            )
            self.exits(code, ranks=[rank])
        return self

    def audits(
        self,
        loaded: Mapping[int, int | str],
        *,
        asked: Sequence[int] | None = None,
        outcome: str = "finished",
        but: Callable[[StateDigest], StateDigest] = lambda digest: digest,
        as_of: int | None = None,
        chosen: int | None = None,
        **more: object,
    ) -> Self:
        """New ranks load each step of `loaded`: the state of the step it maps to (its own), or an error with that text.

        They do so from storage as it was when the step `as_of` had been acknowledged. `chosen` is what recovery says there.
        """
        moment = None if as_of is None else j.Moment(as_of, "shared")
        for step, what in sorted(loaded.items()):
            for rank in range(self.world):
                event = j.Audited(attempt=self.number, rank=rank, step=step, as_of=moment)
                if isinstance(what, str):
                    event = msgspec.structs.replace(event, error_type="OSError", message=what)
                else:
                    live = but(self.state(what, rank, **more))
                    event = msgspec.structs.replace(event, digest=live, chosen=chosen)
                self.events.append(event)
        steps = tuple(sorted(loaded))
        asked = steps if asked is None else tuple(asked)
        self.events.append(
            j.AuditEnded(attempt=self.number, outcome=outcome, asked=asked, retained=steps, as_of=moment)  # type: ignore[arg-type]
        )
        return self

    def reference(
        self, after: int, upto: int = STEPS, *, start: Callable[[StateDigest], StateDigest] = lambda d: d
    ) -> Self:
        """The harness's own job of this attempt, which trained from step `after` on."""
        steps = []
        for step in range(after + 1, upto + 1):
            world = combine([self.state(step, rank) for rank in range(self.world)])
            samples = tuple(sorted(sample for rank in range(self.world) for sample in share(step, rank, self.world)))
            losses = tuple(loss(step, rank, self.world) for rank in range(self.world))
            saved = step % 2 == 0
            parts = part_fingerprints(world) if saved else {}
            rng = tuple(map(fingerprint, world.rng)) if saved else ()
            steps.append(j.ReferenceStep(step, samples, losses, parts, rng))
        begun = [start(self.state(after, rank)) for rank in range(self.world)]
        self.events.append(
            j.Reference(
                attempt=self.number,
                lineage=(j.Segment(self.ranks, 0),),
                resumed_from=after,
                start_rng=tuple(fingerprint(digest.rng) for digest in begun),
                steps=tuple(steps),
            )
        )
        return self

    def finishes(self, step: int = STEPS, ranks: Iterable[int] | None = None) -> Self:
        for rank in self.all(ranks):
            trained = self._trained(step, rank)
            digest = self.state(step, rank)
            self.events.append(j.Finished(attempt=self.number, rank=rank, step=step, digest=digest, trained=trained))
            self.exits(0, ranks=[rank])
        return self

    def ends_well(self) -> Self:
        """Train to the end, saving on the way."""
        return self.saves(STEPS).finishes().ends("finished")


def violated(trial: JournalBuilder) -> tuple[str, str]:
    """(invariant, word) of the primary violation; empty where there is none."""
    primary = trial.verdict().primary
    return (primary.invariant, primary.error_type) if primary is not None else ("", "")


def all_violated(trial: JournalBuilder) -> set[str]:
    """The invariants that a trial breaks."""
    verdict = trial.verdict()
    return {found.invariant for found in (verdict.primary, *verdict.others) if found is not None}


def passes(trial: JournalBuilder) -> None:
    """Assert that a trial breaks nothing and leaves no doubt."""
    verdict = trial.verdict()
    assert verdict.primary is None, verdict.primary
    assert verdict.outcome == "pass", verdict.reason


def interrupted(**more: object) -> TargetJournal:
    """Attempt 0 of a target saved step 2, and was killed in the save of step 4; the closing attempt is launched."""
    trial = TargetJournal(faults=[["cut"]], **more).attempt().recovers(None).saves(2).starts_save(4)  # type: ignore[arg-type]
    return trial.cut().attempt(closing=True)
