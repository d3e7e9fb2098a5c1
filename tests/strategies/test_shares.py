"""Shares: over a long campaign each kind of fault is drawn as its weight says, in every shipped scenario.

The censuses are those of real golden runs. `python -m tests.strategies.test_shares` takes them anew, and prints the shares of 2,000
draws of each; here that many are drawn for two of them, and a part for the others.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import open_local
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario
from chaosckpt.scenario.load import find, shipped
from chaosckpt.strategies import draw
from chaosckpt.strategies.schedules import DrawSpace
from tests.strategies.kinds import KINDS

DIRECTORY = Path(__file__).with_name("censuses")
NAMES = sorted(path.name.removesuffix(".msgpack.gz") for path in DIRECTORY.glob("*.gz"))
DRAWS = 2000
REMOTE = {"dcp-s3"}
"""Scenarios whose storage is no directory, so that no fault is drawn for it."""


def census_of(name: str) -> Census:
    return msgspec.msgpack.decode(gzip.decompress((DIRECTORY / f"{name}.msgpack.gz").read_bytes()), type=Census)


def shares(scenario: Scenario, census: Census, draws: int) -> dict[str, tuple[float, float]]:
    """(share of all drawn faults, share by weight among the kinds that were drawn) of each kind."""
    found: Counter[str] = Counter()
    for index in range(1, draws + 1):
        found.update(fault.kind for fault in draw(1, index, scenario, census, KINDS).faults)
    del found["save-retry"]  # a variant of the job that goes with other faults, whose weight is never asked for
    space = DrawSpace.of(scenario, census, KINDS)
    weights = {name: space.parts(name) for name in space.kinds if found[name]}
    return {
        name: (found[name] / found.total(), parts / sum(weights.values())) for name, parts in sorted(weights.items())
    }


def test_every_shipped_scenario_has_its_census_here() -> None:
    """Goal: a new scenario is held to its weights, too."""
    assert set(NAMES) | REMOTE == {name for name, path in shipped().items() if path.parent.name == "scenarios"}


@pytest.mark.parametrize(("name", "draws"), [(name, DRAWS if name in ("dcp", "two-tier") else 500) for name in NAMES])
def test_kinds_are_drawn_as_they_weigh(name: str, draws: int) -> None:
    """Goal: over 2,000 draws no kind comes less than half, or more than twice, as often as its weight says; over few, nearly so."""
    found = shares(find(name), census_of(name), draws)
    least = 0.5 if draws == DRAWS else 0.3
    odd = {kind: round(drawn / due, 2) for kind, (drawn, due) in found.items() if not least <= drawn / due <= 1 / least}
    assert odd == {}
    assert {"cut", "sigkill", "errno", "not-visible", "latency", "mtimes"} <= set(found)


if __name__ == "__main__":
    for each in sys.argv[1:] or NAMES:
        subject = find(each)
        with closing(open_local(subject)) as arena:
            taken = measure(subject, arena, sweeping=True)
        (DIRECTORY / f"{each}.msgpack.gz").write_bytes(gzip.compress(msgspec.msgpack.encode(taken), mtime=0))
        sys.stdout.write(f"{each}\n")
        for kind, (drawn, due) in shares(subject, taken, DRAWS).items():
            sys.stdout.write(f"  {kind:22s} {drawn:6.1%} drawn, {due:6.1%} by weight\n")
