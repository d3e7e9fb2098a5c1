"""Versions of what a measured target is built on, from the names of the modules that its ranks had imported."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from chaosckpt.measure.versions import versions


def versions_with(modules: Iterable[str]) -> dict[str, str]:
    """Those of runtime and libraries, then those of the distributions that these top-level modules came with."""
    found = versions(object())
    owners = metadata.packages_distributions()
    for name in sorted({owner for module in modules for owner in owners.get(module, ())}):
        found.setdefault(name, metadata.version(name))
    return found
