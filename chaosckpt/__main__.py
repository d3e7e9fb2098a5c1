"""The command `chaosckpt`, also as `python -m chaosckpt`. Ctrl-C during its imports ends it as cleanly as later on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and end the process."""
    try:
        from chaosckpt.cli.main import main as command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
