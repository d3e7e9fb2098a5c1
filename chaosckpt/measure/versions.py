"""The versions that a measurement depends on, found without importing what they are of."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from chaosckpt.engine.wire.versions import of

_ALWAYS = ("python", "implementation", "kernel", "machine", "libc", "chaosckpt", "torch", "numpy")


def versions(target: object) -> dict[str, str]:
    """Versions of the runtime and of the libraries, by name, in a fixed order.

    `target` is the checkpointer's class (or an object of it): the package that its module belongs to is named too, where that has a
    version of its own.
    """
    return of(*dict.fromkeys((*_ALWAYS, *_packages_of(target))))


def _packages_of(target: object) -> list[str]:
    """The distributions that brought the modules of the target's class and of its bases."""
    kind = target if isinstance(target, type) else type(target)
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__} - {"builtins", "abc", "typing", "__main__"}
    owners = metadata.packages_distributions()
    return sorted({owner for root in roots for owner in owners.get(root, ())})


def versions_with(modules: Iterable[str]) -> dict[str, str]:
    """Those of runtime and libraries, then those of the distributions that these top-level modules came with."""
    found = versions(object())
    owners = metadata.packages_distributions()
    for name in sorted({owner for module in modules for owner in owners.get(module, ())}):
        found.setdefault(name, metadata.version(name))
    return found
