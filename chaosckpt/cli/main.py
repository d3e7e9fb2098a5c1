"""The command group `chaosckpt`."""

from __future__ import annotations

import click


@click.group()
@click.version_option(package_name="chaosckpt")
def main() -> None:
    """Find out whether training can really resume from its checkpoints."""
