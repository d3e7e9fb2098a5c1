"""How a validation error of msgspec becomes one sentence with the offending value and the next step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from chaosckpt.model.scenario import Scenario
from chaosckpt.plugins import nearest

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`$")
_WRONG_TYPE = re.compile(r"Expected `(?P<expected>.*)`, got `(?P<got>.*)`$")
_WRONG_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)$")
_PLAIN = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string in quotes",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "a table",
    "bool | int | float | str": "a string, a number, true or false",
    "array | null": "a list in brackets",
    "str | null": "a string in quotes",
}
_TOML_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "array": list, "object": dict}
_HINTS = {
    "topology.ranks": "write a list of topologies, each the number of ranks on every node, such as [[1, 1], [2]]",
    "topology.failure_groups": "write a list of groups of nodes, such as [[0, 1]]",
    "drill.restore_ranks": "write a list of topologies, each the number of ranks on every node, such as [[1], [2, 1]]",
    "drill.environment": 'write a list of names, such as ["LD_LIBRARY_PATH"]',
    "target": 'add a table: [target] with use = "dcp"',
}


def sentence(error: msgspec.ValidationError, data: Mapping[str, Any]) -> str:
    """What is wrong with `data`, the content of a scenario file, without the name of the file."""
    text, _, where = str(error).partition(" - at ")
    steps = _steps(where.strip("`"), data, text)
    if match := _UNKNOWN.match(text):
        return f"unknown key {_dotted([*steps, match['key']])!r}; {nearest(match['key'], _keys(steps))}"
    if match := _MISSING.match(text):
        key = _dotted([*steps, match["key"]])
        return f"the key {key!r} is missing; {_HINTS.get(key, f'add {key} to the scenario')}"
    if match := _WRONG_TYPE.match(text):
        expected = _PLAIN.get(match["expected"], match["expected"])
        return f"{_shown(steps, data)} must be {expected}{_hint(steps)}"
    if _WRONG_CHOICE.match(text):
        return f"{_shown(steps, data)} is not one of {', '.join(map(repr, _choices(steps)))}"
    return text


def _steps(path: str, data: Mapping[str, Any], text: str) -> list[str | int]:
    """`$.faults.kinds[...]` as keys and indices; `[...]` becomes the key of the first entry of the wrong type."""
    steps: list[str | int] = []
    got = _WRONG_TYPE.match(text)
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if name:
            steps.append(name)
        elif index != "...":
            steps.append(int(index))
        else:
            table = _value(steps, data)
            wanted = _TOML_TYPES.get(got["got"]) if got else None
            steps.append(next((key for key, value in table.items() if type(value) is wanted), "?"))
    return steps


def _value(steps: Iterable[str | int], data: Any) -> Any:
    for step in steps:
        data = data[step]
    return data


def _dotted(steps: Iterable[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _shown(steps: list[str | int], data: Mapping[str, Any]) -> str:
    return f"{_dotted(steps)} = {_value(steps, data)!r}"


def _hint(steps: list[str | int]) -> str:
    names = _dotted([step for step in steps if isinstance(step, str)])
    return f"; {_HINTS[names]}" if names in _HINTS else ""


def _keys(steps: Iterable[str | int]) -> tuple[str, ...]:
    """The keys that the table at this place may have."""
    found = _type_at(steps)
    return tuple(field.encode_name for field in found.fields) if isinstance(found, msgspec.inspect.StructType) else ()


def _choices(steps: Iterable[str | int]) -> tuple[Any, ...]:
    found = _type_at(steps)
    return tuple(found.values) if isinstance(found, msgspec.inspect.LiteralType) else ()


def _type_at(steps: Iterable[str | int]) -> msgspec.inspect.Type:
    """What the scenario's Structs declare at this place."""
    found: msgspec.inspect.Type = msgspec.inspect.type_info(Scenario)
    for step in steps:
        found = _without_null(found)
        if isinstance(found, msgspec.inspect.StructType):
            found = next(field.type for field in found.fields if field.encode_name == step)
        elif isinstance(found, msgspec.inspect.DictType):
            found = found.value_type
        elif isinstance(found, msgspec.inspect.VarTupleType):
            found = found.item_type
    return _without_null(found)


def _without_null(found: msgspec.inspect.Type) -> msgspec.inspect.Type:
    if not isinstance(found, msgspec.inspect.UnionType):
        return found
    return next(kind for kind in found.types if not isinstance(kind, msgspec.inspect.NoneType))
