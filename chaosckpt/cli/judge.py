"""`chaosckpt judge`: judge a run again from its stored journals, without running anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from chaosckpt.campaign import journals, judging, options, run_directory
from chaosckpt.campaign.journals import Numbered
from chaosckpt.campaign.options import parse_trial
from chaosckpt.cli import output
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict
from chaosckpt.report.text import judgement_text

EXAMPLES = """\b
Examples:
  chaosckpt judge chaosckpt-runs/001
  chaosckpt judge chaosckpt-runs/001 --explain 1:17

\b
Exit codes: 0 no violation, 1 violations, 2 usage error, 3 no trial could be judged."""


@click.command(epilog=EXAMPLES)
@click.argument("run")
@click.option(
    "--explain",
    metavar="SEED:INDEX",
    help="Explain one trial: which step recovery had to choose, and which ones it was allowed to.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.pass_context
def judge(context: click.Context, run: str, explain: str | None, as_json: bool) -> None:
    """Judge every trial of RUN again from its journals, without running anything.

    RUN is the directory of a run, such as chaosckpt-runs/001. The same journal always gets the same verdict.
    """
    directory = run_directory.existing(run)
    scenario = options.load(directory).scenario
    if explain is not None:
        parse_trial(explain)
        context.exit(_explain(scenario, _of_trial(directory, explain), as_json))
    verdicts = {found.journal.trial: judging.check(scenario, found.journal) for found in journals.read(directory)}
    if as_json:
        output.print_json({"run": str(directory), **_counts(verdicts), "verdicts": verdicts})
    else:
        output.console().print(judgement_text(verdicts))
    outcomes = {verdict.outcome for verdict in verdicts.values()}
    context.exit(1 if "violation" in outcomes else 0 if "pass" in outcomes else 3)


def _counts(verdicts: dict[str, Verdict]) -> dict[str, int]:
    counts = Counter(verdict.outcome for verdict in verdicts.values())
    return {
        "trials": len(verdicts),
        "passed": counts["pass"],
        "violations": counts["violation"],
        "inconclusive": counts["inconclusive"],
    }


def _of_trial(directory: Path, trial: str) -> Numbered:
    """The last journal of a trial. Raises UsageError if the run has none."""
    found = [numbered for numbered in journals.read(directory) if numbered.journal.trial == trial]
    if not found:
        raise UsageError(
            f"the run {directory} has no complete journal of trial {trial}; `chaosckpt judge {directory} --json` lists those it has"
        )
    return found[-1]


def _explain(scenario: Scenario, found: Numbered, as_json: bool) -> int:
    """Print the oracle's reasoning about one trial, and where to find its journal; returns the exit code."""
    verdict = judging.check(scenario, found.journal)
    explanation = judging.explain(scenario, found.journal)
    first, last = found.places[0], found.places[-1]
    if as_json:
        output.print_json(
            {"trial": found.journal.trial, "verdict": verdict, "explanation": explanation, "journal": first}
        )
    else:
        click.echo(explanation)
        click.echo(f"Journal: #0 is {first}, #{len(found.places) - 1} is {last}")
    return 1 if verdict.outcome == "violation" else 0
