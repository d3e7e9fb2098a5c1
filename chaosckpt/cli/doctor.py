"""`chaosckpt doctor`: what works on this machine, and how to fix what doesn't."""

from __future__ import annotations

import click
from rich.text import Text

from chaosckpt.cli import machine as checks
from chaosckpt.cli import output

MARKS = {"ok": ("ok", "green"), "limited": ("limited", "yellow"), "missing": ("MISSING", "bold red")}


@click.command()
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check whether chaosckpt works on this machine, by trying everything it needs.

    Checks the kernel, the gate (seccomp user notification), limits, free space, torch and Ray, and says how to fix what is missing.

    Exit codes: 0 everything needed is available, 2 usage error, 3 something is missing.
    """
    found = checks.run()
    healthy = all(check.state != "missing" for check in found)
    if as_json:
        output.print_json({"healthy": healthy, "checks": found})
    else:
        output.console().print(text(found))
    context.exit(0 if healthy else 3)


def text(found: tuple[checks.Check, ...]) -> Text:
    """A line for each check, and below it what to do, if anything."""
    result = Text()
    for check in found:
        mark, style = MARKS[check.state]
        result.append(f"{mark:<8}", style=style).append(f"{check.name:<16} {check.found}\n")
        if check.remedy:
            result.append(f"{'':<8}{'':<16} → {check.remedy}\n")
    missing = [check.name for check in found if check.state == "missing"]
    return result.append(f"missing: {', '.join(missing)}" if missing else "Everything chaosckpt needs is available.")
