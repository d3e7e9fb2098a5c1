"""Versions: what is told of an environment, without importing anything of it."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from chaosckpt.engine.wire.versions import UNKNOWN, of, of_all_installed


def test_what_is_asked_for_is_told_in_that_order() -> None:
    """Goal: distributions, the interpreter and the machine by one function; what isn't there is no error."""
    found = of("torch", "python", "kernel", "no-such-distribution", "cpu_flags")
    assert list(found) == ["torch", "python", "kernel", "no-such-distribution", "cpu_flags"]
    assert found["torch"] == metadata.version("torch")
    assert found["python"] == platform.python_version()
    assert found["kernel"] == platform.release()
    assert found["no-such-distribution"] == UNKNOWN
    assert len(found["cpu_flags"]) == 16


def test_all_that_can_be_imported_is_named() -> None:
    """Goal: a restart under another set of distributions can say what differs."""
    found = of_all_installed()
    assert found["python"] == f"{platform.python_implementation()} {platform.python_version()}"
    assert found["msgspec"] == metadata.version("msgspec")
    assert list(found)[1:] == sorted(list(found)[1:])
    assert "torch" in found or "torch" not in sys.modules
