"""What is installed: targets, kinds of fault and invariants, found through entry points or, for a target, in a file.

Listing names imports nothing; an object is imported when it is first used. Built-ins are registered like a third party's plugins, in
these groups of entry points, each entry `name = "module:object"`:

    chaosckpt.targets       subclasses of chaosckpt.targets.Target
    chaosckpt.faults        subclasses of chaosckpt.model.fault.Fault, each under its tag
    chaosckpt.invariants    objects of chaosckpt.oracle.Invariant, for targets, commands or both
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from chaosckpt.errors import ChaosckptError, PluginError, UsageError
from chaosckpt.model.fault import Fault
from chaosckpt.targets.api import Target

Group = Literal["targets", "faults", "invariants"]


@functools.cache
def _entries(group: Group) -> dict[str, EntryPoint]:
    """The entry points of a group, sorted by name. Raises PluginError if two packages provide the same name."""
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=f"chaosckpt.{group}"), key=lambda entry: (entry.name, entry.value)):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise PluginError(
                f"two plugins provide the {group[:-1]} {entry.name!r}: {_origin(other)} and {_origin(entry)}; "
                "uninstall one of them"
            )
    return found


def names(group: Group) -> tuple[str, ...]:
    """The registered names of a group, sorted. Imports nothing."""
    return tuple(_entries(group))


@functools.cache
def _loaded(group: Group, name: str) -> Any:
    entry = _entries(group)[name]
    try:
        return entry.load()
    except ChaosckptError:
        raise
    except Exception as error:  # whatever a plugin's own code raises while it is imported
        raise PluginError(
            f"{group[:-1]} {name!r} can't be loaded from {_origin(entry)}: {type(error).__name__}: {error}; "
            "fix or uninstall it"
        ) from error


def targets() -> dict[str, type[Target]]:
    """Every registered target by name. Imports them all, and with them torch."""
    return {name: load_target(name) for name in names("targets")}


def fault_kinds() -> dict[str, type[Fault]]:
    """Every registered kind of fault by name. Raises PluginError for one that isn't a Fault, or whose tag differs from its name."""
    return {name: _fault_kind(name) for name in names("faults")}


faults = fault_kinds


def invariants() -> dict[str, Any]:
    """Every registered invariant by name (chaosckpt.oracle.Invariant, which this layer doesn't import)."""
    return {name: _loaded("invariants", name) for name in names("invariants")}


def load_target(use: str) -> type[Target]:
    """The target class that `use` names: a registered name, or `path/to/file.py:Class`.

    A file is loaded under a module name that depends on its path alone, so that every process can load it again. Raises
    UsageError for a name, file or class that doesn't exist, PluginError for code that can't be imported or isn't a target.
    """
    path, _, wanted = use.rpartition(":")
    if path.endswith(".py") or use.endswith(".py"):
        file = Path(path if path.endswith(".py") else use).expanduser()
        return _checked_target(_class_of(file, wanted if path else "", use), use)
    if use not in names("targets"):
        raise UsageError(
            f"target {use!r} is not registered; {nearest(use, names('targets'))}, or name a file: my_target.py:MyTarget"
        )
    return _checked_target(_loaded("targets", use), use)


target = load_target


def module_of_target(name: str) -> str:
    """The module of a registered target, without importing it; empty where there is none of this name."""
    entry = _entries("targets").get(name)
    return "" if entry is None else entry.module


def is_target_file(spec: str) -> bool:
    """Whether this names a target by file and class, such as `my_target.py:MyTarget`."""
    return ".py:" in spec or spec.endswith(".py")


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say about an unknown name: the nearest known ones, else all."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(map(repr, near)) + "?"
    return f"choose one of: {', '.join(known)}" if known else "none is available"


def forget() -> None:
    """Forget what was found, for a process that has changed its import path."""
    _entries.cache_clear()
    _loaded.cache_clear()
    _fault_kind.cache_clear()


@functools.cache
def _fault_kind(name: str) -> type[Fault]:
    found = _loaded("faults", name)
    if not (isinstance(found, type) and issubclass(found, Fault)):
        raise PluginError(
            f"fault {name!r} from {_origin(_entries('faults')[name])} is not a subclass of chaosckpt.model.fault.Fault; "
            "derive it from that class"
        )
    tag = found.__struct_config__.tag
    if tag != name:
        raise PluginError(
            f"fault {name!r} from {_origin(_entries('faults')[name])} has the tag {tag!r}; "
            "give the class and its entry point the same name"
        )
    return found


def _checked_target(found: Any, use: str) -> type[Target]:
    if not (isinstance(found, type) and issubclass(found, Target)):
        raise PluginError(
            f"target {use!r} is {_what(found)}, not a subclass of chaosckpt.targets.Target; derive it from that class"
        )
    missing = [name for name in ("save", "recover") if getattr(found, name) is getattr(Target, name)]
    if missing:
        raise PluginError(f"target {use!r} defines no {' and no '.join(missing)}; a target needs both save and recover")
    return found


def _class_of(file: Path, wanted: str, use: str) -> Any:
    if not file.is_file():
        raise UsageError(
            f"target {use!r}: there is no file {file}; check the path, and write it as path/to/file.py:Class"
        )
    module = _module(file.resolve())
    if wanted and hasattr(module, wanted):
        return getattr(module, wanted)
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    if not wanted:
        raise UsageError(f"target {use!r} names no class; write {file}:CLASS ({nearest(wanted, own)})")
    raise UsageError(f"target {use!r}: {file} has no {wanted!r}; {nearest(wanted, own)}")


def _module(file: Path) -> ModuleType:
    """The module of a file, loaded once. It can import what is beside the file; installed packages come first."""
    name = f"chaosckpt_file_{file.stem}_{hashlib.blake2b(str(file).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} can't be loaded as Python; name a .py file")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ChaosckptError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # whatever the user's own file raises while it is imported
        del sys.modules[name]
        raise PluginError(
            f"{file} can't be imported: {type(error).__name__}: {error}; run `python {file}` for the traceback"
        ) from error
    return module


def _origin(entry: EntryPoint) -> str:
    package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return f"{entry.value}{package}"


def _what(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
