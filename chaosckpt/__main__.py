"""`python -m chaosckpt`: the same as the command `chaosckpt`."""

from __future__ import annotations

from chaosckpt.cli.main import main

if __name__ == "__main__":
    main()
