"""`chaosckpt measure`: what the checkpoints of a scenario cost, and how often to save."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from chaosckpt.campaign import run_directory
from chaosckpt.cli import output
from chaosckpt.errors import UsageError
from chaosckpt.measure import failure_rate
from chaosckpt.measure.measurement import FailureRate, Measurement, document
from chaosckpt.measure.sweep import MeasureOptions
from chaosckpt.report import quantities
from chaosckpt.scenario import load as scenario

RESULT = "measurement.json"
PAGE = "measurement.html"
EXAMPLES = """\b
Examples:
  chaosckpt measure scenarios/dcp-async.toml --mtbf 24h
  chaosckpt measure dcp --ranks 1,2 --size 1MB,64MB --html dcp.html
  chaosckpt measure my_target.py:MyTarget --failures 7/30d --tolerated-loss 30min
  chaosckpt measure --compare before.json after.json

\b
Exit codes: 0 measured, 2 usage error, 3 harness trouble."""


@click.command(epilog=EXAMPLES)
@click.argument("what", metavar="[SCENARIO]", required=False)
@click.option(
    "--ranks",
    metavar="N,N,…",
    help="Numbers of ranks to sweep over, as in 1,2; the largest is measured in full. Default: the scenario's main topology.",
)
@click.option(
    "--size",
    metavar="SIZE,…",
    help="Checkpoint sizes to sweep over, as in 1MB,64MB; the largest is measured in full. Default: that of the scenario's workload.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    metavar="N",
    default=5,
    show_default=True,
    help="Measure everything N times.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    metavar="N",
    default=1,
    show_default=True,
    help="Make N unmeasured saves first.",
)
@click.option(
    "--neighbours",
    type=click.IntRange(min=0),
    metavar="N",
    default=1,
    show_default=True,
    help="Measure contention: save again beside 1, 2, … up to N jobs that save to the same storage. 0 skips this.",
)
@click.option("--mtbf", metavar="TIME", help="Mean time between failures of the whole job, as in 24h. Default: 24h.")
@click.option(
    "--failures", metavar="N/TIME", help="Number of failures counted in a time, as in 7/30d. Replaces --mtbf."
)
@click.option(
    "--tolerated-loss",
    metavar="TIME",
    help="Most training time that one failure may cost, as in 30min. Default: no limit.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.option(
    "--html", metavar="FILE", help="Also write the result with plots to FILE, as one self-contained HTML page."
)
@click.option("--run-dir", metavar="DIR", help="New or empty directory in which to keep the JSON and the HTML page.")
@click.option(
    "--compare",
    nargs=2,
    metavar="A.json B.json",
    help="Measure nothing; show the ratios of B.json to A.json, two stored measurements.",
)
def measure(what: str | None, compare: tuple[str, str] | None, as_json: bool, **given: object) -> None:
    """Measure what the checkpoints of SCENARIO cost, and recommend how often to save.

    SCENARIO is a TOML file, the name of a shipped scenario, or a target as FILE.py:CLASS.

    Measures the stall and the completion of saves, restarts in fresh processes, space, and contention with other jobs. Injects no
    faults, and runs without the gate.
    """
    if compare is not None:
        asked = [repr(what)] if what is not None else []
        asked += [f"--{name.replace('_', '-')}" for name in sorted(given) if _by_hand(name)]
        if asked:
            raise UsageError(f"--compare measures nothing; leave out {' and '.join(asked)}")
        _compare(*compare, as_json=as_json)
        return
    if what is None:
        raise UsageError(
            "name what to measure: a scenario (see `chaosckpt list scenarios`) or a target such as my_target.py:MyTarget"
        )
    options = _options(what, given)
    page = output.page(str(given["html"]) if given["html"] is not None else None)
    run = run_directory.create(str(given["run_dir"]), resumable=False) if given["run_dir"] is not None else None
    # Imported late, so that help and errors of usage appear at once.
    from chaosckpt.measure import measuring

    provenance = output.provenance()
    found = measuring.measure(options, lambda text: click.echo(f"measure: {text}", err=True))
    found = msgspec.structs.replace(found, provenance=provenance)
    try:
        _store(found, run, page)
    finally:
        # A full disk must not cost the figures, nor a closed pipe the files.
        _show(found, as_json)


def _by_hand(name: str) -> bool:
    """Whether the user gave this option on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _options(what: str, given: dict[str, object]) -> MeasureOptions:
    """Everything is checked before anything is touched."""
    ranks, size, loss = given["ranks"], given["size"], given["tolerated_loss"]
    options = MeasureOptions(
        scenario=scenario.find(what),
        ranks=quantities.counts(str(ranks), "--ranks") if ranks is not None else (),
        sizes=quantities.sizes(str(size), "--size") if size is not None else (),
        repeats=int(str(given["repeats"])),
        warm_up=int(str(given["warm_up"])),
        neighbours=int(str(given["neighbours"])),
        failure_rate=_rate(given["mtbf"], given["failures"]),
        tolerated_loss_seconds=quantities.seconds(str(loss), "--tolerated-loss") if loss is not None else None,
    )
    from chaosckpt.measure import preconditions as checks
    from chaosckpt.measure import sweep

    checks.check(options, sweep.points(options))
    return options


def _rate(mtbf: object, failures: object) -> FailureRate | None:
    if mtbf is not None and failures is not None:
        raise UsageError(f"--mtbf {mtbf} and --failures {failures} both give the failure rate; leave out one of them")
    if mtbf is not None:
        return failure_rate.given(quantities.seconds(str(mtbf), "--mtbf"))
    return failure_rate.counted(*quantities.failures(str(failures), "--failures")) if failures is not None else None


def _show(found: Measurement, as_json: bool) -> None:
    if as_json:
        output.print_json(document(found))
        return
    from chaosckpt.measure.pages.text import measurement_text

    output.console().print(measurement_text(found))


def _store(found: Measurement, run: Path | None, page: Path | None) -> None:
    """Write the JSON and the page to where they were asked for."""
    files = [file for file in (page, run / PAGE if run else None) if file is not None]
    if files:
        from chaosckpt.measure.pages.page import measurement_page

        text = measurement_page(found)
        for file in files:
            file.write_text(text, encoding="utf-8")
    if run is not None:
        (run / RESULT).write_text(output.json_text(document(found)), encoding="utf-8")


def _compare(before: str, after: str, *, as_json: bool) -> None:
    from chaosckpt.measure.comparison import compare
    from chaosckpt.measure.pages.text import comparison_text

    found = compare(before, after)
    if as_json:
        output.print_json(found)
    else:
        output.console().print(comparison_text(found))
