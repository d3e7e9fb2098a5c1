"""Journals written by hand, in the words in which one tells what happened in a trial."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from chaosckpt.model import journal as j
from chaosckpt.model.digest import MODULUS, StateDigest, TensorDigest, combine, fingerprint, part_fingerprints
from chaosckpt.model.guarantee import GUARANTEES, Guarantee
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.scenario import Scenario, TargetSettings

SCENARIO = Scenario(name="told", target=TargetSettings(use="told"))
PARAMS = ("0.weight", "0.bias", "3.weight")
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
ROWS = 4
STEPS = 6
BATCH = 4


def tensor(name: str, step: int, variant: str, rank: int = 0, world: int = 1) -> TensorDigest:
    """The rows rank, rank + world, ... of a tensor as it is after a step; all of them in a world of one."""
    rows = range(rank, ROWS, world)
    hashes = (hashlib.blake2b(f"{name}|{row}|{step}|{variant}".encode(), digest_size=16).hexdigest() for row in rows)
    return TensorDigest(rows=len(rows), total=ROWS, sum=f"{sum(int(h, 16) for h in hashes) % MODULUS:032x}")


def state(
    step: int, rank: int = 0, world: int = 2, *, attempt: int = 0, variant: str = "", sharded: bool = False
) -> StateDigest:
    """What a rank holds after a step. Training is deterministic: two attempts differ only where `variant` says so."""
    part = (rank, world) if sharded else (0, 1)
    names = [f"{name}/{moment}" for name in PARAMS for moment in MOMENTS] if step else []
    return StateDigest(
        rank=rank,
        world_size=world,
        params={name: tensor(name, step, variant, *part) for name in PARAMS},
        optimizer={name: tensor(name, step, variant, *part) for name in names},
        optimizer_scalars={"0.lr": f"float:{0.1 / (1 + step)}", "0.eps": "float:1e-08"},
        scheduler={"last_epoch": f"int:{step}", "T_max": "int:60"},
        step=step,
        rng={name: f"{name}/{rank}/{step}{variant}" for name in ("torch", "python", "numpy")},
        sampler={"position": f"int:{4 * step}", "dataset": "int:64", "seed": "int:0"},
        stamp=(attempt, step or -1, rank, world),
    )


def share(step: int, rank: int, world: int) -> tuple[int, ...]:
    """The samples of a rank in a step: every world-size-th of the step's batch."""
    return tuple(range(BATCH * (step - 1), BATCH * step))[rank::world]


def loss(step: int, rank: int, world: int) -> str:
    return float(step * 100 + rank * 10 + world).hex()


def operation(rank: int = 0, op: str = "write", path: str = "shared:step-000004/__0_0.distcp") -> Operation:
    address = Address(rank=rank, role="main", op=op, path=path, incarnation=1, nth=0)
    return Operation(address=address, sequence=7, raw=path)


class Story:
    """A trial told event by event. Ranks of the current attempt do things together unless `ranks` names some."""

    def __init__(
        self,
        ranks: Sequence[int] = (1, 1),
        *,
        faults: Sequence[Sequence[str]] = (),
        guarantees: Iterable[Guarantee] = GUARANTEES,
        fresh_start: str = "refused",
        sharded: bool = False,
        keeps_rng: bool = False,
        outstanding: int = 1,
        at_end: str = "await",
    ) -> None:
        self.events: list[j.AnyEvent] = [
            j.TrialStarted(
                trial="1:17",
                schedule={"attempts": [{"faults": [{"kind": kind} for kind in plan]} for plan in faults]},
                guarantees=tuple(sorted(guarantees)),
                scenario="told",
                total_steps=STEPS,
                fresh_start=fresh_start,
                keeps_rng=keeps_rng,
                outstanding=outstanding,
                at_end=at_end,
            )
        ]
        self.ranks = tuple(ranks)
        self.sharded = sharded
        self.number = -1
        self.variant = ""
        self._acked: dict[tuple[int, int], set[int]] = {}
        self._resumes = False
        self.variants: list[str] = []
        self.share = share
        self.loss = loss
        self._told: dict[int, int] = {}

    @property
    def world(self) -> int:
        return sum(self.ranks)

    def all(self, ranks: Iterable[int] | None) -> Iterable[int]:
        return range(self.world) if ranks is None else ranks

    def attempt(self, ranks: Sequence[int] | None = None, *, closing: bool = False, variant: str = "") -> Story:
        """Launch the job; it is told to resume when some save was acknowledged by all. `variant` marks its training."""
        self.number += 1
        self.ranks = self.ranks if ranks is None else tuple(ranks)
        self.variant = variant
        self.variants.append(variant)
        self.events.append(
            j.AttemptStarted(
                attempt=self.number, ranks=self.ranks, intent="resume" if self._resumes else "start", closing=closing
            )
        )
        return self

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
    ) -> Story:
        for rank in self.all(ranks):
            captured = but(self.state(step, rank))
            trained = self._trained(step, rank)
            self.events.append(
                j.SaveStarted(attempt=self.number, rank=rank, step=step, digest=captured, trained=trained)
            )
        return self

    def has_outstanding(self, step: int, saves: Sequence[int], ranks: Iterable[int] | None = None) -> Story:
        for rank in self.all(ranks):
            self.events.append(j.Outstanding(attempt=self.number, rank=rank, step=step, saves=tuple(saves)))
        return self

    def fails_save(self, step: int, ranks: Iterable[int] | None = None) -> Story:
        for rank in self.all(ranks):
            self.events.append(
                j.SaveFailed(
                    attempt=self.number, rank=rank, step=step, where="save", error_type="OSError", message="no space"
                )
            )
        return self

    def leaves(self, abandoned: dict[str, int], bound_bytes: int) -> Story:
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

    def acknowledges(self, step: int, level: str = "shared", ranks: Iterable[int] | None = None) -> Story:
        for rank in self.all(ranks):
            self.events.append(j.Acknowledged(attempt=self.number, rank=rank, step=step, level=level))
            acked = self._acked.setdefault((self.number, step), set())
            acked.add(rank)
            self._resumes = self._resumes or len(acked) == self.world
        return self

    def saves(self, step: int, level: str = "shared") -> Story:
        return self.starts_save(step).acknowledges(step, level)

    def begins_recovery(self, ranks: Iterable[int] | None = None) -> Story:
        self.events += [j.RecoveryStarted(attempt=self.number, rank=rank) for rank in self.all(ranks)]
        return self

    def recovers(
        self,
        chosen: int | None,
        *,
        shown: int | None = None,
        ranks: Iterable[int] | None = None,
        but: Callable[[StateDigest], StateDigest] = lambda digest: digest,
        **more: object,
    ) -> Story:
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
    ) -> Story:
        for rank in self.all(ranks):
            at = None if where == "recover" else step
            self.events.append(
                j.Raised(attempt=self.number, rank=rank, where=where, step=at, error_type=error, message=message)
            )
            self.exits(code, ranks=[rank])
        return self

    def exits(self, code: int | None = 1, *, by: str = "self", ranks: Iterable[int] | None = None) -> Story:
        for rank in self.all(ranks):
            sent = 9 if by != "self" else None
            exit_code = code if sent is None else None
            self.events.append(j.RankExited(attempt=self.number, rank=rank, exit_code=exit_code, signal=sent, by=by))  # type: ignore[arg-type]
        return self

    def fault(self, kind: str, index: int = 0, at: Operation | None = None, label: str = "", **more: object) -> Story:
        needs = more.get("needs", ())
        assert isinstance(needs, tuple)
        self.events.append(
            j.FaultInjected(
                attempt=max(self.number, 0),
                fault=index,
                kind=kind,
                evidence="it struck",
                operation=at,
                label=label,
                needs=needs,
            )
        )
        return self

    def cut(self, at: Operation | None = None, label: str = "persist of save 4") -> Story:
        """The whole job is killed at an operation."""
        self.fault("cut", at=at or operation(), label=label)
        return self.exits(by="fault").ends("killed")

    def injects(self, error: str = "EIO", at: Operation | None = None, label: str = "load of the recovery") -> Story:
        struck = at or operation(op="read")
        rank = struck.address.rank
        self.events.append(j.ErrorInjected(attempt=self.number, rank=rank, error=error, operation=struck))
        return self.fault("errno", at=struck, label=label)

    def audits(
        self,
        loaded: Mapping[int, int | str],
        *,
        asked: Sequence[int] | None = None,
        outcome: str = "finished",
        but: Callable[[StateDigest], StateDigest] = lambda digest: digest,
        **more: object,
    ) -> Story:
        """New ranks load each step of `loaded`: the state of the step it maps to (its own), or an error with that text."""
        for step, what in sorted(loaded.items()):
            for rank in range(self.world):
                if isinstance(what, str):
                    event = j.Audited(attempt=self.number, rank=rank, step=step, error_type="OSError", message=what)
                else:
                    live = but(self.state(what, rank, **more))
                    event = j.Audited(attempt=self.number, rank=rank, step=step, digest=live)
                self.events.append(event)
        steps = tuple(sorted(loaded))
        asked = steps if asked is None else tuple(asked)
        self.events.append(j.AuditEnded(attempt=self.number, outcome=outcome, asked=asked, retained=steps))  # type: ignore[arg-type]
        return self

    def mutates(self, path: str, what: str = "bit 3 of byte 100 flipped", *, damages: bool = True) -> Story:
        """Something is done to a file between this attempt and the next one."""
        self.events.append(
            j.StorageMutated(attempt=self.number + 1, tier="shared", node=None, path=path, what=what, damages=damages)
        )
        return self

    def destroys(self, tier: str, node: int | None, cause: str, index: int = 0, *, next_attempt: bool = True) -> Story:
        """Storage is lost, by default between this attempt and the next one."""
        attempt = self.number + next_attempt
        self.events.append(j.StorageDestroyed(attempt=attempt, tier=tier, node=node, files=3, cause=cause))  # type: ignore[arg-type]
        self.events.append(j.FaultInjected(attempt=attempt, fault=index, kind=cause, evidence="3 files deleted"))
        return self

    def ends(self, outcome: str, *, confirmed: bool = False) -> Story:
        self.events.append(j.AttemptEnded(attempt=self.number, outcome=outcome, confirmed=confirmed))  # type: ignore[arg-type]
        return self

    def reference(
        self, after: int, upto: int = STEPS, *, start: Callable[[StateDigest], StateDigest] = lambda d: d
    ) -> Story:
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

    def finishes(self, step: int = STEPS, ranks: Iterable[int] | None = None) -> Story:
        for rank in self.all(ranks):
            trained = self._trained(step, rank)
            digest = self.state(step, rank)
            self.events.append(j.Finished(attempt=self.number, rank=rank, step=step, digest=digest, trained=trained))
            self.exits(0, ranks=[rank])
        return self

    def ends_well(self) -> Story:
        """Train to the end, saving on the way."""
        return self.saves(STEPS).finishes().ends("finished")

    def journal(self) -> j.Journal:
        return j.Journal((*self.events, j.TrialEnded()))


def interrupted(**more: object) -> Story:
    """Attempt 0 saved step 2, and was killed in the save of step 4; the closing attempt is launched."""
    story = Story(faults=[["cut"]], **more).attempt().recovers(None).saves(2).starts_save(4)  # type: ignore[arg-type]
    return story.cut().attempt(closing=True)
