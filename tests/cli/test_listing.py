"""`list`: what is installed, from the same registry that campaigns use."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt import plugins
from chaosckpt.cli.listing import first_sentence
from chaosckpt.scenario import load as scenario


def test_targets(run):
    """Every registered target is listed with its guarantees; canaries only when asked for."""
    found = msgspec.json.decode(run("list", "targets", "--json").out)["targets"]
    everything = msgspec.json.decode(run("list", "targets", "--canaries", "--json").out)["targets"]
    assert set(everything) == set(plugins.names("targets"))
    assert set(found) == {name for name in everything if not name.startswith("canary-")}
    assert "process-crash" in found["dcp"]["guarantees"]
    assert all(row["description"] for row in everything.values())


def test_faults(run):
    """Every registered kind of fault is listed and describes itself."""
    found = msgspec.json.decode(run("list", "faults", "--json").out)["faults"]
    assert set(found) == set(plugins.names("faults"))
    assert all(row["description"] for row in found.values())


def test_invariants(run):
    """Every registered invariant is listed with when it holds."""
    found = msgspec.json.decode(run("list", "invariants", "--json").out)["invariants"]
    assert set(found) == set(plugins.names("invariants"))
    assert all(row["holds when"] for row in found.values())


def test_scenarios(run):
    """Every shipped scenario is listed with its topologies."""
    found = msgspec.json.decode(run("list", "scenarios", "--json").out)["scenarios"]
    assert set(found) == set(scenario.shipped())
    assert found["dcp"]["ranks"] == "1+1 1 2+1"


def test_tables_are_for_reading(run):
    """Without --json each entry begins a line of a table."""
    lines = run("list", "scenarios").out.splitlines()
    assert lines[0].split() == ["name", "target", "ranks", "description"]
    assert any(line.startswith("dcp-overwrite ") for line in lines)


def test_a_census_needs_the_gate(run, tmp_path):
    """Without the gate no operation is seen, and the refusal says so before anything runs."""
    path = tmp_path / "mine.toml"
    path.write_text('name = "x"\n[target]\nuse = "dcp"\n[run]\ngate = "none"\n')
    result = run("list", "census", str(path))
    assert result.code == 2
    assert 'run.gate = "none"' in result.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, ""),
        ("One.", "One."),
        ("One\n    line. Two.", "One line."),
        ("Title\n\nBody.", "Title."),
        ("a 0.5 b. c", "a 0.5 b."),
    ],
)
def test_first_sentence(text, sentence):
    """A docstring's first sentence, on one line."""
    assert first_sentence(text) == sentence
