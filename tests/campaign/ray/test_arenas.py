from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from chaosckpt.campaign.ray.arenas import RayArenas
from chaosckpt.campaign.ray.cluster import connect
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.scenario import Scenario, TargetSettings
from tests.campaign.ray.ray_cases import CUT, NODE_LOSS, SCENARIO, expected, lives, story, trial
from tests.waiting import holds_within


@pytest.fixture(scope="module")
def cluster():
    with connect(None, cpus=2) as connected:
        yield connected


@pytest.fixture(scope="module")
def pool(cluster):
    with RayArenas(cluster, SCENARIO, 1) as arenas:
        yield arenas


def test_ranks_of_two_actors_are_one_job(pool) -> None:
    """Two node actors with one rank each make one process group, are cut together, and go on from the first save."""
    arena = pool.arena(0)
    first, second = arena.actors
    assert first.birth.actor_pid != second.birth.actor_pid
    assert story(trial(arena, CUT)) == expected("cut")


def test_a_killed_actor_is_harness_trouble(pool) -> None:
    """An actor killed from outside ends the trial as harness trouble, its processes with it; rebuilt, the arena serves again."""
    arena = pool.arena(0)
    victim, events = arena.actors[1], []

    def kill_in_first_save(event: j.AnyEvent) -> None:
        events.append(event)
        if isinstance(event, j.SaveStarted) and event.rank == 1:
            os.kill(victim.birth.actor_pid, signal.SIGKILL)

    with pytest.raises(HarnessError, match="ended unexpectedly"):
        trial(arena, CUT, kill_in_first_save)
    assert [type(event) for event in events[-2:]] == [j.HarnessTrouble, j.TrialEnded]
    assert holds_within(20, lambda: not lives(victim.birth.pid))
    with pytest.raises(HarnessError):
        victim.counts()
    assert pool.rebuild(0) is arena
    assert victim not in arena.nodes
    assert story(trial(arena, CUT)) == expected("cut")


def test_an_injected_node_loss_moves_to_the_spare(pool) -> None:
    """The lost node's processes are gone; the spare has its storage at the same path, without its content; the trial goes on."""
    arena = pool.arena(0)
    lost, local = arena.actors[1], arena.tiers(1)["local"]

    def store(event: j.AnyEvent) -> None:
        if isinstance(event, j.SaveStarted) and event.attempt == 0:
            Path(local, "of the lost node").write_text("x")

    journal = trial(arena, NODE_LOSS, store)
    assert story(journal) == expected("node-loss")
    destroyed = [event for event in journal.events if isinstance(event, j.StorageDestroyed)]
    assert [(event.tier, event.node, event.files) for event in destroyed] == [("local", 1, 1)]
    assert arena.nodes[1] is not lost
    assert not lives(lost.birth.pid)
    assert arena.tiers(1)["local"] == local
    assert os.listdir(local) == []


def test_refused_settings_are_the_users_mistake(cluster) -> None:
    """A target that isn't there comes back from the node as one sentence of the right kind, and nothing stays."""
    wrong = Scenario(name="wrong", target=TargetSettings(use="no-such-target"))
    with RayArenas(cluster, wrong, 1, spares=0) as arenas, pytest.raises(UsageError, match="no-such-target"):
        arenas.arena(0)


def test_closing_early_gives_up_what_boots(cluster) -> None:
    """A pool that is closed while its nodes boot ends them."""
    arenas = RayArenas(cluster, SCENARIO, 1)
    arenas.close()
    with pytest.raises(HarnessError):
        arenas.arena(0)
