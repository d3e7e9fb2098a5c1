"""A scenario as the TOML text that reads back as the same scenario: for a run, for a finding's folder, for a starter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaosckpt.model.scenario import CommandSettings, Scenario

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
