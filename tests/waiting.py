"""Waiting for what happens in another process."""

from __future__ import annotations

import time
from collections.abc import Callable


def holds_within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Look again and again until it holds, at most so long."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
