"""Restarts of a drill told by hand: a journal in words, and what the ranks found around them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import msgspec

from chaosckpt.drill.evidence import Findings, judge
from chaosckpt.drill.restart import Allocated, ObservedRestart
from chaosckpt.engine.wire.reports import RankEnvironment
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest
from chaosckpt.model.scenario import DrillSettings, Scenario
from chaosckpt.model.topology import Topology
from chaosckpt.oracle.check import BUILT_IN
from tests.oracle.journals import SCENARIO, TargetJournal

KNOWN = 4
OWN = ("OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR")


def asking(**drill: object) -> Scenario:
    """The scenario of these stories, with a table [drill]."""
    return msgspec.structs.replace(SCENARIO, drill=DrillSettings(**drill))  # type: ignore[arg-type]


def saved(ranks: Iterable[int] = (1, 1), **more: object) -> TargetJournal:
    """A job that saved steps 2 and 4, was told that both are safe, and ended."""
    story = TargetJournal(tuple(ranks), **more).attempt().recovers(None).saves(2).saves(KNOWN)  # type: ignore[arg-type]
    story.finishes(KNOWN).ends("finished")
    return lists(story, 2, KNOWN).reference(0, KNOWN)


def lists(story: TargetJournal, *steps: int) -> TargetJournal:
    """The target lists these steps as complete, and loads none."""
    story.events.append(j.AuditEnded(attempt=0, outcome="finished", asked=(0,), retained=steps))
    return story


def restored(
    story: TargetJournal, *, but: Callable[[StateDigest], StateDigest] = lambda digest: digest, chosen: int = KNOWN
) -> TargetJournal:
    """The last attempt restores a step and trains to the end."""
    return story.attempt(closing=True).recovers(chosen, but=but).saves(6).finishes().ends("finished").reference(chosen)


def refused(
    story: TargetJournal, message: str = "there is no complete checkpoint: looked for /shared/step-*"
) -> TargetJournal:
    """Every rank of the last attempt raises that."""
    story.attempt(closing=True).begins_recovery().raises("recover", "CheckpointError", message)
    return story.ends("failed")


def around(rank: int, pid: int = 0, *, fresh: bool = True) -> RankEnvironment:
    """What a rank found, of an old allocation or of a fresh one."""
    main = "chaosckpt.engine.rank.main" if fresh else "chaosckpt.engine.forkserver.server"
    return RankEnvironment(
        rank=rank,
        pid=pid or 200 + rank,
        began=str(pid or 200 + rank),
        argv=(sys.executable, "-P", "-m", main, "5"),
        executable=sys.executable,
        environment=OWN if fresh else (*OWN, "HOME", "PATH"),
        temporary="/tmp/new" if fresh else "/tmp/old",
        local_files=(),
        filters=0,
        versions={"python": "CPython 3.11.7", "torch": "2.13.0"},
    )


def restart(
    story: TargetJournal, *, new: bool = True, files: int = 0, scenario: Scenario = SCENARIO, **more: object
) -> tuple[ObservedRestart, Findings]:
    """The restart that this story tells, judged. `more` changes what the new ranks found around them."""
    if not isinstance(story.events[-1], j.TrialEnded):
        story.events.append(j.TrialEnded())
    journal = j.Journal(tuple(story.events))
    ranks = tuple(msgspec.structs.replace(around(rank), **more) for rank in range(story.world))
    told = ObservedRestart(
        journal=journal,
        topology=Topology(story.ranks),
        known_step=KNOWN,
        old=Allocated(environments=(around(0, 100, fresh=False), around(1, 101, fresh=False))),
        new=Allocated(environments=ranks) if new else None,
        local_files={0: files, 1: 0},
    )
    return told, judge(scenario, journal, BUILT_IN)
