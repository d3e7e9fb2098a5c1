"""The code under test in a few lines, for a finding's pages: read from its files, never imported."""

from __future__ import annotations

import ast
import importlib.util
import os
import textwrap
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from chaosckpt.model.finding import Excerpt
from chaosckpt.model.scenario import CommandSettings, Scenario
from chaosckpt.report.subject_terms import terms_of

LONGEST_SCRIPT = 60
"""Lines up to which a script is shown whole."""
_LARGEST_BYTES = 1 << 20
_CALLS = frozenset(
    "save load save_checkpoint load_checkpoint save_pretrained from_pretrained save_state load_state save_file load_file async_save "
    "replace rename fit train".split()
)


def target_place(use: str) -> tuple[str, str, str]:
    """(module, file, class) of a target: a module for a registered one, else a file. Imports nothing of it."""
    file, _, name = use.rpartition(":")
    if file.endswith(".py"):
        return "", file, name
    value = next((entry.value for entry in entry_points(group="chaosckpt.targets") if entry.name == use), "")
    module, _, name = value.partition(":")
    return module, "", name or use


def scripts_of(command: CommandSettings) -> dict[str, str]:
    """The Python files among a command's words, as they stand there, each with its own name."""
    return {
        word: os.path.basename(word)
        for word in command.argv
        if word.endswith(".py") and _readable(Path(command.directory, word))
    }


def excerpts(scenario: Scenario) -> tuple[Excerpt, ...]:
    """A target's `save` and `recover`; a command's line, and the statements of its script that save and load."""
    terms = terms_of(scenario)
    return (*_of_target(scenario.target.use), *terms.command_line, *_of_scripts(terms.command))


def _of_target(use: str) -> Iterator[Excerpt]:
    module, file, name = target_place(use)
    path = Path(file) if file else _file_of(module)
    if path is None or not _readable(path):
        return
    for method in ("save", "recover"):
        where, text = _method(path, name, method, depth=5)
        if text:
            inherited = "" if where == name else f", which {name} inherits"
            yield Excerpt(f"`{method}` of {where}{inherited}", text)


def _readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _LARGEST_BYTES


def _of_scripts(command: CommandSettings) -> Iterator[Excerpt]:
    for word, name in scripts_of(command).items():
        text = Path(command.directory, word).read_text(encoding="utf-8", errors="replace")
        if text.count("\n") <= LONGEST_SCRIPT:
            yield Excerpt(name, text.rstrip())
        elif statements := _saving_and_loading(text):
            yield Excerpt(f"{name}: the lines that save and load", statements)


def _saving_and_loading(text: str) -> str:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    lines = text.splitlines()
    wanted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in _CALLS:
            wanted |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return "\n".join(f"{number:4}  {lines[number - 1]}" for number in sorted(wanted))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _method(path: Path, name: str, method: str, depth: int) -> tuple[str, str]:
    """(the class that defines it, its source without docstring), looked for in the class and then in its bases."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return "", ""
    own = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None)
    if own is None:
        return "", ""
    for node in own.body:
        if isinstance(node, ast.FunctionDef) and node.name == method:
            return name, _source(text, node)
    for base in own.bases if depth else ():
        place = _imported(tree, ast.unparse(base), path)
        if place is not None and (found := _method(*place, method, depth - 1))[1]:
            return found
    return "", ""


def _source(text: str, node: ast.FunctionDef) -> str:
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        del lines[first.lineno - node.lineno : (first.end_lineno or first.lineno) - node.lineno + 1]
    return textwrap.dedent("\n".join(lines))


def _imported(tree: ast.Module, name: str, path: Path) -> tuple[Path, str] | None:
    """Where a base class is defined: in the same file, or in the module that it is imported from."""
    if any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body):
        return path, name
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    beside = path.parent / (node.module.replace(".", "/") + ".py")
                    file = beside if beside.is_file() else _file_of(node.module)
                    return None if file is None else (file, alias.name)
    return None


def _file_of(module: str) -> Path | None:
    """The file of a module, found by the place of its top-level package, which is not imported."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    for root in spec.submodule_search_locations or ():
        for file in (Path(root, *rest).with_suffix(".py"), Path(root, *rest, "__init__.py")):
            if file.is_file():
                return file
    return None
