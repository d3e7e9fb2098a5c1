"""The code that a subject brings along: local files that it imports, and installed packages, found without importing anything.

Read from the import statements of its files, wherever they stand, and of what these import in turn. What is imported by a name that is
only known at run time isn't seen so; names that a run has shown are looked for, too.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import NamedTuple

import chaosckpt
from chaosckpt.engine.wire import versions

MOST_FILES = 2000
"""Of a local library, so many files are followed."""
_INSTALLED = {"site-packages", "dist-packages"}


class Sources(NamedTuple):
    """`files` are the local modules by their dotted names, `packages` the distributions that are installed, all sorted.

    `roots` are the files of the subject itself.
    """

    files: dict[str, Path]
    packages: tuple[str, ...]
    roots: tuple[Path, ...] = ()

    def digest(self) -> str:
        """16 hexadecimal digits over the names and contents of the files, and over the versions of the packages."""
        found = hashlib.blake2b(repr(versions.of(*self.packages)).encode(), digest_size=8)
        for name, path in self.files.items():
            found.update(name.encode() + b"\0" + hashlib.blake2b(_content(path)).digest())
        return found.hexdigest()


def sources(
    roots: Sequence[Path], search: Sequence[Path], names: Iterable[str] = (), *, first: bool = False
) -> Sources:
    """What the files `roots` import, and of the modules `names` those that are local. The roots themselves are left out.

    Modules are looked for where this interpreter looks and in the directories `search`: after that, or with `first` before it.
    """
    finder = _Finder([str(path) for path in search], first)
    shown = {found for name in names for found in _prefixes(name)}
    waiting = [*sorted(shown), *(found for root in roots for found in _imports(root, ""))]
    files: dict[str, Path] = {}
    seen: set[str] = set()
    installed: set[str] = set()
    own = {path.resolve() for path in roots}
    while waiting and len(files) < MOST_FILES:
        name = waiting.pop()
        if name in seen or name.partition(".")[0] in installed or _is_of_others(name):
            continue
        seen.add(name)
        path, is_package = finder.find(name)
        if path is None:
            continue
        if _is_local(path):
            if path.resolve() not in own:
                files[name] = path
                waiting += _imports(path, name if is_package else name.rpartition(".")[0])
        else:
            installed.add(name.partition(".")[0])
    packages = {found for name in installed - shown for found in _distributions_of(name)}
    return Sources(dict(sorted(files.items())), tuple(sorted(packages)), tuple(roots))


class _Finder:
    """Where modules lie: top-level ones by the import system and in the directories to search, the others within their package."""

    def __init__(self, search: Sequence[str], first: bool) -> None:
        self._search = search
        self._first = first
        self._places: dict[str, Sequence[str]] = {}

    def find(self, name: str) -> tuple[Path | None, bool]:
        """(the file of a module, whether it is a package); no file where there is none, as for a namespace."""
        package, _, last = name.rpartition(".")
        if package and package not in self._places:
            self.find(package)
        if package:
            file, places = _within(self._places[package], last)
        else:
            ways = (_within(self._search, last), _by_the_system(last))
            file, places = next((way for way in (ways if self._first else ways[::-1]) if any(way)), (None, ()))
        self._places[name] = places
        return file, bool(places)


def _within(directories: Sequence[str], name: str) -> tuple[Path | None, Sequence[str]]:
    """(the file, the directories of what is in it) of a module in one of these directories."""
    folders = [os.path.join(directory, name) for directory in directories]
    for folder in folders:
        for suffix in all_suffixes():
            if os.path.isfile(package := os.path.join(folder, "__init__" + suffix)):
                return Path(package), [folder]
            if os.path.isfile(folder + suffix):
                return Path(folder + suffix), ()
    return None, [folder for folder in folders if os.path.isdir(folder)]


def _by_the_system(name: str) -> tuple[Path | None, Sequence[str]]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return None, ()
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    return file, list(spec.submodule_search_locations or ())


def _imports(path: Path, package: str) -> Iterator[str]:
    """The modules that a file may mean by its import statements; `package` is the one that it is in."""
    try:
        tree = ast.parse(_content(path)) if path.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _prefixes(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, above), *filter(None, [node.module])])
            if base and (not node.level or package):
                yield from _prefixes(base)
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _prefixes(name: str) -> list[str]:
    """A module's packages and itself: `a`, `a.b` and `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _is_of_others(name: str) -> bool:
    """Whether it belongs to the interpreter or to the harness; whose versions are known otherwise."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in ("chaosckpt", "__main__", "__mp_main__", "torch")


@functools.cache
def _installed_places() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = os.path.dirname(chaosckpt.__file__)
    return tuple(
        os.path.realpath(place) + os.sep for place in (own, *(paths[key] for key in ("stdlib", "purelib", "platlib")))
    )


def _is_local(path: Path) -> bool:
    real = os.path.realpath(path)
    return not real.startswith(_installed_places()) and not _INSTALLED.intersection(Path(real).parts)


def _distributions_of(module: str) -> Iterable[str]:
    """The distributions that a top-level module belongs to: mostly one of its own name, which is found faster."""
    try:
        return [metadata.distribution(module).name]
    except metadata.PackageNotFoundError:
        return _distributions().get(module, ())


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
