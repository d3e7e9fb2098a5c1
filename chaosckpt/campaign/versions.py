"""Versions as `torch.utils.collect_env` tells them first, found without importing torch: what a report to its authors begins with."""

from __future__ import annotations

import functools
import importlib.util
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "safetensors", "accelerate", "transformers", "lightning", "deepspeed", "fsspec", "ray")


@functools.cache
def versions() -> tuple[str, ...]:
    """Lines such as `PyTorch version: 2.13.0+cpu`, in collect_env's own words."""
    torch = _of_torch()
    lines = [
        f"PyTorch version: {torch.get('__version__') or _installed('torch') or 'N/A'}",
        f"Is debug build: {torch.get('debug') or 'N/A'}",
        f"CUDA used to build PyTorch: {torch.get('cuda') or 'N/A'}",
        f"OS: {_system()} ({platform.machine()})",
        f"Libc version: {'-'.join(filter(None, platform.libc_ver())) or 'N/A'}",
        f"Python version: {platform.python_version()} ({platform.architecture()[0]} runtime)",
        f"Python platform: {platform.platform()}",
    ]
    lines += [f"[pip3] {name}=={found}" for name in (*_PACKAGES, "torch") if (found := _installed(name))]
    return tuple(lines)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _of_torch() -> dict[str, str]:
    """What torch's own version file says."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    try:
        text = Path(next(iter(spec.submodule_search_locations)), "version.py").read_text(encoding="utf-8")
    except OSError:
        return {}
    found = re.findall(r"^(\w+)(?::[^=]+)? = '?([^'\n]+)'?$", text, re.MULTILINE)
    return {name: value for name, value in found if value != "None"}


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
