"""Where scenarios come from: a TOML file, the name of a shipped one, or a target alone; and how one becomes TOML again."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import chaosckpt
from chaosckpt import plugins
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import (
    DEFAULT_SCENARIO,
    CommandSettings,
    Scenario,
    TargetSettings,
    TopologySettings,
    ranks_told,
)
from chaosckpt.plugins import is_target_file, nearest
from chaosckpt.scenario.check import check
from chaosckpt.scenario.errors import sentence


def shipped_directory() -> Path:
    """Where the shipped scenarios are: inside the package when installed, beside it in a checkout."""
    package = Path(chaosckpt.__file__).parent
    inside = package / "scenarios"
    return inside if inside.is_dir() else package.parent / "scenarios"


def shipped() -> dict[str, Path]:
    """The scenarios that come with the package, by name."""
    return {path.stem: path for path in sorted(shipped_directory().glob("*.toml"))}


def find(spec: str) -> Scenario:
    """The scenario that `spec` names: a TOML file, the name of a shipped scenario, or `file.py:Class` for a target alone.

    Raises UsageError.
    """
    if not spec.strip():
        raise UsageError("the name of the scenario is empty; `chaosckpt list scenarios` lists the shipped ones")
    if is_target_file(spec):
        return scenario_for_target(spec)
    path = Path(spec)
    if path.is_dir():
        raise UsageError(f"{spec} is a directory; name the scenario file in it, such as {path / 'scenario.toml'}")
    if path.is_file():
        return read(path)
    known = shipped()
    # `scenarios/dcp.toml` means the shipped file also where there is no checkout, as on the pages of the documentation.
    name = path.stem if path.suffix == ".toml" and str(path.parent) in (".", "scenarios") else spec
    if name in known:
        return read(known[name])
    if spec in plugins.names("targets"):
        return scenario_for_target(spec)
    raise UsageError(f"{spec!r} is neither a scenario file nor a shipped scenario; {nearest(name, known)}")


def read(path: Path) -> Scenario:
    """The scenario in a file. Raises UsageError, one sentence with the file, the offending value and the next step."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the scenario {path} can't be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the scenario {path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except RecursionError as error:
        raise UsageError(f"the scenario {path} is nested too deeply; a scenario has tables of values only") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"the scenario {path} is not valid TOML: {error}; docs/reference/scenario.md has an example"
        ) from error
    try:
        return parse(data, path.parent)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def parse(data: Mapping[str, Any], directory: Path | None = None) -> Scenario:
    """The scenario in the content of a file. A target's file is sought from here, then from `directory`. Raises UsageError."""
    try:
        scenario = msgspec.convert(data, Scenario)
    except msgspec.ValidationError as error:
        raise UsageError(sentence(error, data)) from error
    scenario = _with_command_directory(_with_target_file(scenario, directory), directory)
    if scenario.command is not None and "topology" not in data:
        ranks = ((ranks_told(scenario.command.argv),),)
        scenario = msgspec.structs.replace(scenario, topology=TopologySettings(ranks=ranks))
    check(scenario)
    return scenario


def scenario_for_command(command: CommandSettings, ranks: Sequence[int]) -> Scenario:
    """The scenario of a command given on the command line, with these numbers of ranks. Raises UsageError."""
    topology = TopologySettings(ranks=tuple((count,) for count in ranks))
    name = Path(
        next((word for word in command.argv if word.endswith(".py")), command.argv[0] if command.argv else "")
    ).stem
    scenario = Scenario(name=name or "command", description=" ".join(command.argv), command=command, topology=topology)
    check(scenario)
    return scenario


def _with_command_directory(scenario: Scenario, directory: Path | None) -> Scenario:
    """The scenario with its command's directory as an absolute path, which is relative to the scenario's file, if there is one."""
    command = scenario.command
    if command is None:
        return scenario
    place = (directory or Path.cwd()) / command.directory
    return msgspec.structs.replace(scenario, command=msgspec.structs.replace(command, directory=str(place.absolute())))


def scenario_for_target(spec: str) -> Scenario:
    """The default scenario for a target: two nodes with one rank each, one rank, and two on one node; every fault kind."""
    name = spec.rpartition(":")[2] if is_target_file(spec) else spec
    topology = TopologySettings(ranks=((1, 1), (1,), (2,)))
    scenario = Scenario(
        name=name, description=f"{spec}, {DEFAULT_SCENARIO}", target=TargetSettings(use=spec), topology=topology
    )
    scenario = _with_target_file(scenario, None)
    check(scenario)
    return scenario


def _with_target_file(scenario: Scenario, directory: Path | None) -> Scenario:
    """The scenario with an absolute path to its target's file, so that it means the same in every process. Raises UsageError."""
    use = scenario.target.use
    if not is_target_file(use):
        return scenario
    name, _, wanted = use.rpartition(":") if ".py:" in use else (use, "", "")
    candidates = [Path(name).expanduser(), *([directory / name] if directory else [])]
    path = next((candidate.absolute() for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise UsageError(
            f"target.use = {use!r}: there is no file {name}; check the path, or run `chaosckpt init DIRECTORY` for a starter"
        )
    classes = _classes(path)
    if wanted not in classes:
        problem = f"has no class {wanted!r}" if wanted else "is named without a class"
        raise UsageError(
            f"target.use = {use!r}: {name} {problem}; write {name}:CLASS (its classes: {', '.join(classes) or 'none'})"
        )
    return msgspec.structs.replace(scenario, target=msgspec.structs.replace(scenario.target, use=f"{path}:{wanted}"))


def _classes(path: Path) -> list[str]:
    """The classes defined at the top of a Python file, found without running it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} is not valid Python: {error}; fix it first") from error
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


_COMMAND = {key: value for key, value in msgspec.to_builtins(CommandSettings(argv=())).items() if key != "argv"}


def to_toml(scenario: Scenario) -> str:
    """The scenario with what differs from the defaults."""
    given = {name: value for name, value in msgspec.to_builtins(scenario).items() if value is not None}
    top = {key: value for key, value in given.items() if not isinstance(value, dict) and value != ""}
    lines = _pairs(top)
    defaults = msgspec.to_builtins(Scenario(name="", target=msgspec.convert({"use": ""}, type(scenario.target))))
    for table, values in given.items():
        if isinstance(values, dict):
            usual = defaults[table] or _COMMAND
            changed = {key: value for key, value in values.items() if value is not None and value != usual.get(key)}
            lines += ["", f"[{table}]", *_pairs(changed)] if changed else []
    return "\n".join([*lines, ""])


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    """One value. JSON's strings, numbers, booleans and lists are TOML's too, but for the escape of DEL and non-finite numbers."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if plain else _value(key)
