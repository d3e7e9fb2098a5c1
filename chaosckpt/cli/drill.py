"""`chaosckpt drill`: the restart test of a scenario, and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from chaosckpt import plugins
from chaosckpt.campaign import run_directory
from chaosckpt.cli import output
from chaosckpt.drill.certificate import Certificate
from chaosckpt.model.journal import Journal, encode
from chaosckpt.scenario import load as scenario

PAGE = "certificate.html"

EXAMPLES = """\b
Examples:
  chaosckpt drill scenarios/dcp.toml
  chaosckpt drill my_target.py:MyTarget --html certificate.html
  chaosckpt drill dcp --json

\b
Exit codes: 0 everything that was asked for held, 1 something did not, 2 usage error, 3 something could not be tested."""


@click.command(epilog=EXAMPLES)
@click.argument("what", metavar="SCENARIO")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.option("--html", metavar="FILE", help="Also write the certificate to FILE, as one self-contained HTML page.")
@click.option(
    "--run-dir", metavar="DIR", help="New or empty directory in which to keep the certificate and its journals."
)
@click.pass_context
def drill(context: click.Context, what: str, as_json: bool, html: str | None, run_dir: str | None) -> None:
    """Run the restart test of SCENARIO and print its certificate.

    SCENARIO is a TOML file, the name of a shipped scenario, or a target as FILE.py:CLASS.

    Saves a known step, ends the job, restores that step in a fresh allocation, trains on, and kills a later save at several exact
    points. The scenario's table [drill] can add other numbers of ranks, another interpreter, and more kills.
    """
    found = scenario.find(what)
    # Imported late, so that help and bad input are answered at once.
    from chaosckpt.drill.drill import check
    from chaosckpt.drill.drill import drill as carry_out
    from chaosckpt.drill.pages import certificate_text

    check(found)
    page = output.page(html)
    run = run_directory.create(run_dir, resumable=False) if run_dir is not None else None
    provenance = output.provenance()
    journals: list[Journal] = []
    certificate = carry_out(
        found,
        tuple(plugins.invariants().values()),
        progress=lambda text: click.echo(f"drill: {text}", err=True),
        keep=journals.append,
    )
    certificate = msgspec.structs.replace(certificate, provenance=provenance)
    try:
        _store(certificate, journals, run, page)
    finally:
        # A full disk must not cost the certificate, nor a closed pipe the files.
        if as_json:
            output.print_json({"held": certificate.held, **output.plain(certificate)})
        else:
            output.console().print(certificate_text(certificate))
    context.exit(certificate.exit_code)


def _store(certificate: Certificate, journals: Sequence[Journal], run: Path | None, page: Path | None) -> None:
    """Store the certificate, and the journals that its evidence refers to by number: restart by restart, kill by kill."""
    if run is not None:
        (run / "certificate.json").write_bytes(msgspec.json.format(msgspec.json.encode(certificate), indent=2) + b"\n")
        (run / "journals").mkdir()
        for number, journal in enumerate(journals):
            lines = b"".join(encode(event) + b"\n" for event in journal.events)
            (run / "journals" / f"{number:03d}.jsonl").write_bytes(lines)
    files = [file for file in (page, run / PAGE if run is not None else None) if file is not None]
    if files:
        from chaosckpt.drill.pages import certificate_page

        text = certificate_page(certificate)
        for file in files:
            file.write_text(text, encoding="utf-8")
