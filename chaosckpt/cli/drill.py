"""`chaosckpt drill`: the restart test of a scenario, as a certificate."""

from __future__ import annotations

from pathlib import Path

import click

from chaosckpt import plugins
from chaosckpt.campaign import scenario
from chaosckpt.cli import output
from chaosckpt.errors import UsageError

EXAMPLES = """\b
Examples:
  chaosckpt drill scenarios/dcp.toml
  chaosckpt drill my_target.py:MyTarget --html certificate.html
  chaosckpt drill dcp --json

\b
Exit codes: 0 all that was asked held, 1 something did not, 2 usage, 3 something could not be tested."""


@click.command(epilog=EXAMPLES)
@click.argument("what", metavar="SCENARIO")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
@click.option("--html", metavar="FILE", help="Write the certificate as a page, too; it needs no network to be read.")
@click.pass_context
def drill(context: click.Context, what: str, as_json: bool, html: str | None) -> None:
    """Test whether SCENARIO's job restarts from its checkpoints: a TOML file, the name of a shipped scenario, or a target as
    FILE.py:CLASS.

    Saves a known step, ends the job, restores it in a fresh allocation, trains on, and kills a later save at several exact points. The
    scenario's table [drill] asks for more.
    """
    found = scenario.find(what)
    page = _writable(html)
    # Imported late, so that help and bad input are answered at once.
    from chaosckpt.measure.drill import drill as carry_out
    from chaosckpt.report.certificate_text import certificate_text

    certificate = carry_out(
        found, tuple(plugins.invariants().values()), say=lambda text: click.echo(f"drill: {text}", err=True)
    )
    if page is not None:
        from chaosckpt.report.certificate_page import certificate_page

        page.write_text(certificate_page(certificate), encoding="utf-8")
    if as_json:
        output.print_json({"held": certificate.held, **output.plain(certificate)})
    else:
        output.console().print(certificate_text(certificate))
    context.exit(certificate.exit_code)


def _writable(html: str | None) -> Path | None:
    """The file of --html. Raises UsageError, before anything is run, where it can't be written."""
    if html is None:
        return None
    path = Path(html).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"--html {html}: {'it is a directory' if path.is_dir() else f'there is no directory {path.parent}'}; name a file"
        )
    return path
