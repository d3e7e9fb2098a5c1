"""`chaosckpt list`: what is installed, and the census of a scenario."""

from __future__ import annotations

import click
from rich.table import Table

from chaosckpt import plugins
from chaosckpt.campaign import judging
from chaosckpt.cli import output
from chaosckpt.errors import UsageError
from chaosckpt.model.census import Census, GoldenRun
from chaosckpt.model.scenario import Scenario
from chaosckpt.oracle.check import BUILT_IN
from chaosckpt.report.text import census_table
from chaosckpt.scenario import load as scenario

EXAMPLES = """\b
Examples:
  chaosckpt list scenarios
  chaosckpt list faults --json
  chaosckpt list census scenarios/dcp.toml"""

as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)


@click.group(name="list", epilog=EXAMPLES)
def listing() -> None:
    """List targets, faults, invariants and scenarios, plugins included, or the census of a scenario."""


@listing.command()
@click.option(
    "--canaries", is_flag=True, help="Include canaries: targets with one planted bug each, which test the oracle."
)
@as_json_option
def targets(as_json: bool, canaries: bool) -> None:
    """List the checkpointers that can be tested, and what each promises to survive."""
    rows: dict[str, dict[str, object]] = {
        name: {
            "guarantees": sorted(found.guarantees),
            "tiers": sorted(found.tiers),
            "description": first_sentence(found.__doc__),
        }
        for name, found in sorted(plugins.targets().items())
        if canaries or not name.startswith("canary-")
    }
    _show("targets", rows, as_json)


@listing.command()
@as_json_option
def faults(as_json: bool) -> None:
    """List the kinds of fault, and the guarantees under which a checkpoint must survive each.

    The column ends says what a fault ends: the job, a rank, perhaps the job, or nothing.
    """
    rows: dict[str, dict[str, object]] = {
        kind: {"ends": found.ends, "needs": sorted(found.needs), "description": first_sentence(found.__doc__)}
        for kind, found in sorted(plugins.faults().items())
    }
    _show("faults", rows, as_json)


@listing.command()
@as_json_option
def invariants(as_json: bool) -> None:
    """List the properties by which every trial is judged, the highest precedence first."""
    built_in = [invariant.name for invariant in BUILT_IN]
    found = {invariant.name: invariant for invariant in judging.installed()}
    ordered = [*built_in, *(name for name in found if name not in built_in)]
    rows: dict[str, dict[str, object]] = {
        name: {
            "judges": [
                subject
                for subject, judges in (("targets", found[name].of_target), ("commands", found[name].of_command))
                if judges is not None
            ],
            "holds when": found[name].holds,
        }
        for name in ordered
        if name in found
    }
    _show("invariants", rows, as_json)


@listing.command()
@as_json_option
def scenarios(as_json: bool) -> None:
    """List the scenarios that come with chaosckpt, and the ranks of their topologies, node by node."""
    rows: dict[str, dict[str, object]] = {}
    for name, path in scenario.shipped().items():
        found = scenario.read(path)
        topologies = " ".join(map(str, found.topology.topologies))
        rows[name] = {"target": found.target.use, "ranks": topologies, "description": found.description}
    _show("scenarios", rows, as_json)


@listing.command()
@click.argument("what", metavar="SCENARIO")
@as_json_option
def census(what: str, as_json: bool) -> None:
    """Run SCENARIO without faults, and list its storage operations by stage.

    Faults can be injected at each of them.

    SCENARIO is a TOML file, the name of a shipped scenario, or a target as FILE.py:CLASS.
    """
    taken = _take_census(scenario.find(what))
    if as_json:
        output.print_json(plain(taken))
        return
    for run in taken.runs:
        output.console().print(census_table(run))
    output.console().print(f"fingerprint {taken.fingerprint}")


def _take_census(found: Scenario) -> Census:
    """The census of a scenario: from a fault-free run on this machine, or from the cache of an earlier one."""
    from chaosckpt.campaign import preparation  # Imported late, so that help and errors of usage appear at once.

    if found.run.gate == "none":
        raise UsageError(
            'run.gate = "none": without the gate no storage operation is seen; leave the key out to list the census'
        )
    return preparation.prepare(found, progress=lambda text: click.echo(text, err=True)).census


def plain(census: Census) -> dict[str, object]:
    """The census as one JSON object: each run with its points, addresses and labels."""
    return {
        "fingerprint": census.fingerprint,
        "environment": census.environment,
        "runs": [_run(run) for run in census.runs],
    }


def _run(run: GoldenRun) -> dict[str, object]:
    stages: dict[str, int] = {}
    for point in run.points:
        stages[point.label.stage] = stages.get(point.label.stage, 0) + 1
    points = [
        {**output.plain(point.address), **output.plain(point.label), "length": point.length} for point in run.points
    ]
    return {"topology": str(run.topology), "resumed_from": run.resumed_from, "stages": stages, "points": points}


def first_sentence(documentation: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join((documentation or "").strip().split("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "." if paragraph else ""


def _show(name: str, rows: dict[str, dict[str, object]], as_json: bool) -> None:
    if as_json:
        output.print_json({name: rows})
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    columns = list(next(iter(rows.values()), {}))
    for column in ("name", *columns):
        table.add_column(column, no_wrap=column == "name")
    for row, values in rows.items():
        table.add_row(row, *(" ".join(value) if isinstance(value, list) else str(value) for value in values.values()))
    output.console().print(table, soft_wrap=False)
