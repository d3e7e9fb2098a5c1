"""What every reproduce.py has: the stored files laid out as the crash left them, and which errors name a checkpoint.

Standard library only: the generator copies this into the script.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ANY_PATH = re.compile(r"(?<![\w.])[\w.*:~-]*/[\w./*:~-]*\w")
ANY_FILE = re.compile(
    r"(?<![\w/])[\w*-]*\.(?:pt|pth|ckpt|bin|json|safetensors|distcp|metadata|npz|npy|tmp|done|txt|marker|complete)\b",
    re.IGNORECASE,
)
ANY_CHECKPOINT = re.compile(
    r"checkpoint\w*\b.*?\b(?:(?:in|under|at|from|on|below) \S*\w|step[ _]?\d+)", re.IGNORECASE | re.DOTALL
)
CODE = re.compile(r"^https?://|\.(?:py|cc|cpp|cu|h|hpp|rs)(?::\d+)*$")
CODE_LINE = re.compile(r'^\s*File ".*", line \d+.*$|^\s{4,}.*$', re.MULTILINE)


def lay_out(case: dict[str, Any], root: Path) -> dict[str, str]:
    """Copy `storage/` below `root`, with the times and links that the files had. Returns each tier's directory by its name."""
    if not (HERE / "storage").is_dir():
        print(f"{HERE / 'storage'} is missing: keep it beside this script", file=sys.stderr)
        raise SystemExit(2)
    shutil.copytree(HERE / "storage", root, symlinks=True, dirs_exist_ok=True)
    roots: dict[str, str] = case["roots"]
    for path, link in case["links"]:
        for place, original in roots.items():  # a link within the storage leads to the copy
            link = link.replace(original, str(root / place))
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(link)
    for path in case["mentions"]:
        if (root / path).is_file():
            text = (root / path).read_text(encoding="utf-8")
            for place, original in roots.items():
                text = text.replace(original, str(root / place))
            (root / path).write_text(text, encoding="utf-8")
    for path in case["directories"]:
        (root / path).mkdir(parents=True, exist_ok=True)
    for path, modified_ns in case["times"]:  # deepest first, so that a directory's time is not touched again
        if (root / path).exists():
            os.utime(root / path, ns=(modified_ns, modified_ns))
    return {place: str(root / place) for place in case["places"]}


def scenario_beside() -> dict[str, Any]:
    """The scenario of the finding, where it lies beside this script: it names the code's original place."""
    path = HERE / "scenario.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def names_a_checkpoint(text: str) -> bool:
    """Whether an error names what was looked for: a path, a file's name, or a checkpoint with its place. Code doesn't count."""
    said = CODE_LINE.sub("", text)
    paths = [path for path in ANY_PATH.findall(said) if not CODE.search(path)]
    return bool(paths or ANY_FILE.search(said) or ANY_CHECKPOINT.search(said))
