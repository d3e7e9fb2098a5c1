"""The hunt for one canary: by the ordinary search, shrunk as a campaign does it, and by kills at random times."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.preparation import deadlines_of
from chaosckpt.campaign.shrink.shrinking import Shrinker
from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Violation
from chaosckpt.plugins import fault_kinds
from chaosckpt.strategies.drawing import draw
from tests.power import canary_scenarios
from tests.power.random_kill import random_kill
from tests.power.warm_arena import use

FLOOR_SECONDS = 3.0
"""Patience with a trial that stands still: a hang is watched for so long, and then confirmed at three times that."""
MOST_FAULTS = 2
Say = Callable[[str], None]


class Limits(msgspec.Struct, frozen=True):
    """How long is hunted, in trials: by the search, by random kills, and for shrinking, each seed."""

    trials: int = 200
    kills: int = 60
    shrinking: int = 60


class Catch(msgspec.Struct, frozen=True):
    """One seed's hunt. `trials` until the first violation of the declared invariant, `sentence`; None where there was none.

    `faults` is how many its schedule shrank to. `others` are the trials before it that violated another invariant, with
    its name. `kills`: trials until kills at random times showed a violation, of whatever invariant.
    """

    seed: int
    trials: int | None
    sentence: str = ""
    faults: int = 0
    others: tuple[tuple[int, str], ...] = ()
    kills: int | None = None


class Result(msgspec.Struct, frozen=True):
    """A canary, what should catch it, and how each seed did. `trouble`: why it could not be hunted."""

    canary: str
    declared: str
    limits: Limits
    catches: tuple[Catch, ...] = ()
    trouble: str = ""

    @property
    def trials(self) -> float:
        """Median over the seeds; beyond the limit where most didn't find it."""
        return statistics.median(catch.trials or self.limits.trials + 1 for catch in self.catches)

    @property
    def kills(self) -> float:
        """The same for kills at random times."""
        return statistics.median(catch.kills or self.limits.kills + 1 for catch in self.catches)

    @property
    def faults(self) -> float:
        return statistics.median(catch.faults for catch in self.catches)

    @property
    def met(self) -> bool:
        """Whether every seed found it, and shrunk it to few faults."""
        return bool(self.catches) and all(catch.trials and catch.faults <= MOST_FAULTS for catch in self.catches)


class Hunt:
    """One canary on a warm arena."""

    def __init__(
        self, canary: str, declared: str, arena: Arena, limits: Limits, lock: SharedExclusiveLock, say: Say
    ) -> None:
        self.declared = declared
        self.limits = limits
        self.say = lambda text: say(f"{canary}: {text}")
        self.scenario = canary_scenarios.scenario(canary)
        self.kinds = fault_kinds()
        use(arena, self.scenario)
        self.census = measure(self.scenario, arena)
        deadlines = msgspec.structs.replace(deadlines_of(self.census), floor_seconds=FLOOR_SECONDS)
        subject = subject_of(self.scenario, Prepared(census=self.census))
        self._executor = Executor(subject, arena, deadlines, lock, lambda trial, event: None)

    def seed(self, seed: int) -> Catch:
        """Search, shrink what was found, and compare with random kills."""
        catch = self._search(seed)
        found = f"{self.declared} after {catch.trials} trials, {catch.faults} faults" if catch.trials else "not found"
        self.say(f"seed {seed}: {found}")
        kills = self._kills(seed)
        self.say(f"seed {seed}: by random kills {f'after {kills}' if kills else 'not found'}")
        return msgspec.structs.replace(catch, kills=kills)

    def _search(self, seed: int) -> Catch:
        others: list[tuple[int, str]] = []
        for index in range(self.limits.trials):
            schedule = draw(seed, index, self.scenario, self.census, self.kinds)
            violation = self._violation(schedule, f"{seed}:{index}")
            if violation is None:
                continue
            if violation.invariant == self.declared:
                faults = len(self._shrunk(schedule).faults)
                return Catch(seed, index + 1, violation.sentence, faults, tuple(others))
            others.append((index + 1, violation.invariant))
        return Catch(seed, None, others=tuple(others))

    def _violation(self, schedule: Schedule, trial: str) -> Violation | None:
        return self._executor.run(schedule, trial).verdict.primary

    def _shrunk(self, schedule: Schedule) -> Schedule:
        """The schedule with the fewest faults that still violates the declared invariant first.

        A campaign's shrinker goes on to move each fault to the simplest place; here only their number counts.
        """
        shrinker = Shrinker(schedule, self.census, cap=self.limits.shrinking)
        while wanted := shrinker.wanted():
            if len(wanted[0].faults) == len(shrinker.best.faults) <= MOST_FAULTS:
                break
            found = self._violation(wanted[0], "shrink")
            shrinker.tell(wanted[0], found is not None and found.invariant == self.declared)
        return shrinker.best

    def _kills(self, seed: int) -> int | None:
        for index in range(self.limits.kills):
            if self._violation(random_kill(seed, index, self.census), f"kill-{seed}:{index}") is not None:
                return index + 1
        return None


def hunt(
    canary: str, declared: str, arena: Arena, seeds: Sequence[int], limits: Limits, lock: SharedExclusiveLock, say: Say
) -> Result:
    """All seeds of one canary."""
    one = Hunt(canary, declared, arena, limits, lock, say)
    return Result(canary, declared, limits, tuple(one.seed(seed) for seed in seeds))
