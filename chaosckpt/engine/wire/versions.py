"""Versions, found without importing what they are of: of the interpreter, of the machine, and of what is installed."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable
from importlib import metadata

UNKNOWN = "unknown"


def of(*names: str) -> dict[str, str]:
    """The versions of these, in this order: distributions, or what `_FOUND_OTHERWISE` names. One that isn't there is unknown."""
    return {name: _FOUND_OTHERWISE.get(name, lambda name=name: _installed(name))() for name in names}


def of_all_installed() -> dict[str, str]:
    """The interpreter's version, and that of every distribution that it can import from, by its normalised name."""
    found = {
        name.lower().replace("_", "-"): version
        # Those found later on the path are hidden by those found before.
        for distribution in reversed(list(metadata.distributions()))
        if (name := distribution.metadata["Name"]) and (version := distribution.version)
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = str(torch.__version__)
    return {"python": f"{platform.python_implementation()} {platform.python_version()}", **dict(sorted(found.items()))}


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return UNKNOWN


def _libc() -> str:
    return " ".join(part for part in platform.libc_ver() if part) or UNKNOWN


def _cpu_flags() -> str:
    """A digest of what the processor can do, by which libraries choose their kernels."""
    try:
        with open("/proc/cpuinfo") as stream:
            line = next((line for line in stream if line.startswith(("flags", "Features"))), "")
    except OSError:
        line = ""
    return hashlib.blake2b(line.encode(), digest_size=8).hexdigest()


_FOUND_OTHERWISE: dict[str, Callable[[], str]] = {
    "python": platform.python_version,
    "implementation": lambda: sys.implementation.name,
    "kernel": platform.release,
    "machine": platform.machine,
    "libc": _libc,
    "cpu_flags": _cpu_flags,
}
