"""The reference: what the harness's own job trains without any checkpointer is what an exact recovery goes on to train."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaosckpt.engine.runner.arena import node_settings
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model import journal as j
from chaosckpt.model.digest import combine, fingerprint, part_fingerprints
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology
from tests.engine.case import Case, scenario_of

TOPOLOGIES = ((1, 1), (1,), (2, 1))
Started = dict[tuple[int, int], list[j.SaveStarted]]


@pytest.fixture(scope="module", params=["ddp", "fsdp2"])
def resharded(request: pytest.FixtureRequest) -> Iterator[Case]:
    """A job with dropout whose world changes; it saves after each of four steps."""
    case = Case(scenario_of("dcp", TOPOLOGIES, workload={"strategy": request.param, "steps": 4}))
    yield case
    case.close()


def killed_after(step: int, rank: int = 0) -> Cut:
    """The whole job is killed once the save of a step has its `.metadata`."""
    path = f"shared:step-{step:06d}/.metadata.tmp"
    return Cut((Trigger(Address(rank, "main", "rename", path, 1, 0), "after"),))


@pytest.mark.parametrize(
    "worlds",
    [((1, 1), (2, 1)), ((2, 1), (1,)), ((1,), (1, 1)), ((1, 1), (1,), (1, 1))],
    ids=["2-3", "3-1", "1-2", "2-1-2"],
)
def test_the_reference_is_equal_bitwise_to_what_was_trained(
    resharded: Case, worlds: tuple[tuple[int, ...], ...]
) -> None:
    """Goal: after each world-size change the harness's own resharded job and the recovered one stay equal, RNG and data included."""
    attempts = []
    for number, ranks in enumerate(worlds):
        change = [] if number == 0 and ranks == TOPOLOGIES[0] else [WorldSize(Topology(ranks))]
        last = number == len(worlds) - 1
        attempts.append([*change, *([] if last else [killed_after(number + 1)])])
    journal, verdict = resharded.run(*attempts)
    assert verdict.outcome == "pass", verdict
    references = {event.attempt: event for event in journal.events if isinstance(event, j.Reference)}
    assert [segment.ranks for segment in references[len(worlds) - 1].lineage] == list(worlds)
    assert [segment.since for segment in references[len(worlds) - 1].lineage] == list(range(len(worlds)))
    saves: Started = {}
    for event in journal.events:
        if isinstance(event, j.SaveStarted):
            saves.setdefault((event.attempt, event.step), []).append(event)
    compared = 0
    for (attempt, step), started in saves.items():
        reference = next(at for at in references[attempt].steps if at.step == step)
        digests = sorted((event.digest for event in started), key=lambda digest: digest.rank)
        assert part_fingerprints(combine(digests)) == reference.parts, (attempt, step)
        assert tuple(fingerprint(digest.rng) for digest in digests) == reference.rng, (attempt, step)
        trained = [trace for event in started for trace in event.trained]
        assert tuple(sorted(sample for trace in trained for sample in trace.samples)) == reference.samples
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize("resharded", ["ddp"], indirect=True)
def test_a_reference_is_none_where_the_loaded_state_is_nobodys(resharded: Case) -> None:
    """Goal: what can't be told from the saves has no reference, and the trial goes on."""
    case = Case(scenario_of("canary-optimizer-lost", workload={"steps": 4}), resharded.arena)
    resharded.arena.nodes[0].use(node_settings(case.scenario, resharded.arena.directory, gate=True))
    path = "shared:step-000002.tmp"
    journal, _ = case.run([Cut((Trigger(Address(0, "main", "rename", path, 0, 0), "after"),))])
    assert [event.attempt for event in journal.events if isinstance(event, j.Reference)] == [0]
