"""Scenarios as text: what is written is read back as the same scenario."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaosckpt.model.scenario import FaultSettings, Scenario, StorageSettings, TargetSettings
from chaosckpt.scenario import load as scenario
from chaosckpt.scenario.load import to_toml

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.one_of(st.booleans(), st.integers(-(2**62), 2**62), st.floats(), WORDS)


def read(text: str) -> Scenario:
    return msgspec.convert(tomllib.loads(text), Scenario)


@pytest.mark.parametrize("name", sorted(scenario.shipped()))
def test_shipped_scenarios_come_back(name):
    """Every shipped scenario is the same after a turn through its text."""
    found = scenario.find(name)
    assert read(to_toml(found)) == found


def test_only_what_differs_is_written():
    """Defaults are left out, so that the text is as short as a person's."""
    minimal = Scenario(name="x", target=TargetSettings(use="dcp"))
    assert to_toml(minimal) == 'name = "x"\n\n[target]\nuse = "dcp"\n'


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORDS, st.dictionaries(WORDS, VALUES, max_size=3), st.dictionaries(WORDS, st.floats(0, 9), max_size=3))
def test_any_names_and_values_come_back(word, options, kinds):
    """Quotes, line ends, control characters, infinities and keys of any kind survive."""
    original = Scenario(
        name=word,
        description=word,
        target=TargetSettings(use=word, options=options),
        storage=StorageSettings(shared=word),
        faults=FaultSettings(kinds=kinds),
    )
    assert repr(read(to_toml(original))) == repr(original), "by text, because nan is not equal to itself"
