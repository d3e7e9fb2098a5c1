"""`chaosckpt reproduce`: replay a finding, or a trial by its name, and count how often it reproduces."""

from __future__ import annotations

import click

from chaosckpt.campaign.options import ReproduceOptions, parse_trial
from chaosckpt.cli import output
from chaosckpt.errors import UsageError
from chaosckpt.model.summary import Replay
from chaosckpt.report.text import replay_line, reproduction_text
from chaosckpt.scenario import load as scenario

EXAMPLES = """\b
Examples:
  chaosckpt reproduce chaosckpt-runs/001/findings/ID
  chaosckpt reproduce chaosckpt-runs/001/findings/ID --times 1
  chaosckpt reproduce --scenario scenarios/dcp.toml --trial 1:17

\b
Exit codes: 0 no replay shows a violation, 1 at least one does, 2 usage error, 3 no replay could be judged."""


@click.command(epilog=EXAMPLES)
@click.argument("finding", metavar="[FINDING]", required=False)
@click.option(
    "--scenario",
    "what",
    metavar="SCENARIO",
    help="Scenario of --trial: a TOML file, the name of a shipped scenario, or FILE.py:CLASS.",
)
@click.option(
    "--trial",
    metavar="SEED:INDEX",
    help="Replay this trial instead of a finding. Its schedule is drawn again from its seed.",
)
@click.option("--times", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="Replay N times.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.pass_context
def reproduce(
    context: click.Context, finding: str | None, what: str | None, trial: str | None, times: int, as_json: bool
) -> None:
    """Replay a finding, or one trial of a scenario, and count how often the violation shows.

    FINDING is the folder of a finding. No Ray is needed.
    """
    options = _options(finding, what, trial, times)
    # Imported late, so that help and errors of usage appear at once.
    from chaosckpt.campaign.reproduce import reproduce as replay_all

    def watch(replay: Replay) -> None:
        click.echo(replay_line(replay, times), err=True)

    result = replay_all(options, watch)
    if as_json:
        output.print_json({"reproduced": f"{result.reproduced}/{len(result.replays)}", **output.plain(result)})
    else:
        output.console().print(reproduction_text(result))
    context.exit(result.exit_code)


def _options(finding: str | None, what: str | None, trial: str | None, times: int) -> ReproduceOptions:
    if finding is not None:
        if what is not None or trial is not None:
            raise UsageError("name either the folder of a finding, or --scenario and --trial; leave out the other")
        return ReproduceOptions(times=times, finding=finding)
    if what is None or trial is None:
        raise UsageError("name what to reproduce: the folder of a finding, or --scenario SCENARIO --trial SEED:INDEX")
    parse_trial(trial)
    return ReproduceOptions(times=times, scenario=scenario.find(what), trial=trial)
