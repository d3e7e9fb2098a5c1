"""The hunt for one canary: by the ordinary search, shrunk as a campaign does it, and by kills at random times."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.campaign.execution import Executor, Turns
from chaosckpt.campaign.preparation import deadlines_of
from chaosckpt.campaign.shrink import Shrinker
from chaosckpt.engine.arena import Arena
from chaosckpt.engine.golden import measure
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Violation
from chaosckpt.plugins import fault_kinds
from chaosckpt.strategies.drawing import draw
from tests.power import scenes
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
    """One seed's hunt. `trials` until the first violation, which broke `invariant`; None where there was none.

    `faults` is what the schedule shrank to, `shown` the invariant that it breaks then. `kills`: trials until kills at random
    times showed a violation.
    """

    seed: int
    trials: int | None
    invariant: str = ""
    sentence: str = ""
    faults: int = 0
    shown: str = ""
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
        """Whether every seed found it and shrunk it to few faults, and most often saw the invariant that it declares."""
        found = [catch for catch in self.catches if catch.trials and catch.faults <= MOST_FAULTS]
        shown = [catch.shown for catch in found]
        often = max((shown.count(name) for name in shown), default=0)
        return bool(found) and len(found) == len(self.catches) and shown.count(self.declared) == often


class Hunt:
    """One canary on a warm arena."""

    def __init__(self, canary: str, arena: Arena, limits: Limits, turns: Turns, say: Say) -> None:
        self.limits = limits
        self.say = lambda text: say(f"{canary}: {text}")
        self.scenario = scenes.scenario(canary)
        self.kinds = fault_kinds()
        use(arena, self.scenario)
        self.census = measure(self.scenario, arena)
        deadlines = msgspec.structs.replace(deadlines_of(self.census), floor_seconds=FLOOR_SECONDS)
        self._executor = Executor(self.scenario, arena, deadlines, turns, lambda trial, event: None, census=self.census)

    def seed(self, seed: int) -> Catch:
        """Search, shrink what was found, and compare with random kills."""
        catch = Catch(seed, None)
        for index in range(self.limits.trials):
            schedule = draw(seed, index, self.scenario, self.census, self.kinds)
            violation = self._violation(schedule, f"{seed}:{index}")
            if violation is not None:
                smallest, shown = self._shrunk(schedule, violation)
                catch = Catch(
                    seed, index + 1, violation.invariant, violation.sentence, len(smallest.faults), shown.invariant
                )
                break
        found = f"{catch.shown} after {catch.trials} trials" if catch.trials else "not found"
        self.say(f"seed {seed}: {found}, shrunk to {catch.faults} faults")
        kills = self._kills(seed)
        self.say(f"seed {seed}: by random kills {f'after {kills}' if kills else 'not found'}")
        return msgspec.structs.replace(catch, kills=kills)

    def _violation(self, schedule: Schedule, trial: str) -> Violation | None:
        return self._executor.run(schedule, trial).verdict.primary

    def _shrunk(self, schedule: Schedule, violation: Violation) -> tuple[Schedule, Violation]:
        """The schedule with the fewest faults that still breaks the same invariant, and what it breaks it with.

        A campaign's shrinker goes on to move each fault to the simplest place; here only their number counts.
        """
        shrinker = Shrinker(schedule, self.census, cap=self.limits.shrinking)
        while wanted := shrinker.wanted():
            if len(wanted[0].faults) == len(shrinker.best.faults) <= MOST_FAULTS:
                break
            found = self._violation(wanted[0], "shrink")
            same = found is not None and found.invariant == violation.invariant
            shrinker.tell(wanted[0], same)
            violation = found if found is not None and same else violation
        return shrinker.best, violation

    def _kills(self, seed: int) -> int | None:
        for index in range(self.limits.kills):
            if self._violation(random_kill(seed, index, self.census), f"kill-{seed}:{index}") is not None:
                return index + 1
        return None


def hunt(
    canary: str, declared: str, arena: Arena, seeds: Sequence[int], limits: Limits, turns: Turns, say: Say
) -> Result:
    """All seeds of one canary."""
    one = Hunt(canary, arena, limits, turns, say)
    return Result(canary, declared, limits, tuple(one.seed(seed) for seed in seeds))
