"""Phrasing: how operations, addresses and triggers are told to people. Pure; every sentence that names one uses these.

The exact address (`str(address)`) stands beside such a phrase, once, where a machine needs it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import MARK, STEP, Address

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ACTORS = {"main": "", "thread": "'s saver thread", "child": "'s saver process"}
_ROOTS = {"out": "the output directory", "shared": "the shared storage directory", "local": "the node-local directory"}
_DOING = {
    "persist": "while saving step {}",
    "snapshot": "while taking the snapshot of step {}",
    "commit": "while committing step {}",
    "retire": "while removing the checkpoint of step {}",
    "discover": "while looking for the checkpoint of step {}",
    "load": "while loading step {}",
}
_RECOVERING = {
    "discover": "while looking for a checkpoint",
    "load": "while loading a checkpoint",
    "retire": "while removing old checkpoints",
}
_REPORTS = {
    "savestarted": "starting a save",
    "acknowledged": "acknowledging a save",
    "savefailed": "reporting a failed save",
    "recoverystarted": "starting its recovery",
    "recovered": "finishing its recovery",
    "mark": "reaching the next stage",
    "finished": "finishing training",
}


class _Verb(NamedTuple):
    """An operation that is told by a verb, since it rarely happens twice: "opening X for reading", "opened X for reading"."""

    doing: str
    done: str
    after: str = ""


_NOUNS = {
    "write": "write to",
    "read": "read of",
    "fsync": "fsync of",
    "list": "listing of",
    "stat": "stat of",
    "access": "access check of",
}
"""Operations that often happen several times on one file, told by a noun: "the first write to X"."""
_VERBS = {
    "open_write": _Verb("opening", "opened", " for writing"),
    "open_read": _Verb("opening", "opened", " for reading"),
    "close": _Verb("closing", "closed"),
    "ftruncate": _Verb("truncating", "truncated"),
    "truncate": _Verb("truncating", "truncated"),
    "fallocate": _Verb("reserving space for", "reserved space for"),
    "rename": _Verb("renaming", "renamed"),
    "link": _Verb("making a hard link to", "made a hard link to"),
    "symlink": _Verb("making the symbolic link", "made the symbolic link"),
    "unlink": _Verb("deleting", "deleted"),
    "mkdir": _Verb("making the directory", "made the directory"),
    "rmdir": _Verb("removing the directory", "removed the directory"),
    "chmod": _Verb("changing the permissions of", "changed the permissions of"),
    "sync": _Verb("syncing", "synced"),
    "readlink": _Verb("reading the symbolic link", "read the symbolic link"),
}


def describe_operation(address: Address, label: str = "") -> str:
    """A phrase for one operation, as in "rank 0's first write to ckpt-4.pt, while saving step 4".

    `label` is the text of a census label (`str(Label)`, as in `persist of save 4`), or empty.
    """
    return _with_label(_phrase(address), label)


def describe_trigger(trigger: Trigger, label: str = "") -> str:
    """When a fault strikes, as in "before rank 0's first write to ckpt-4.pt" or "after 3 bytes of ...".

    Operations that are told by a verb become a clause: "before rank 0 opened rank-0.pt for writing".
    """
    address = trigger.address
    if trigger.when == "torn":
        return _with_label(f"after {plural(trigger.torn_bytes, 'byte')} of {_phrase(address)}", label)
    return _with_label(f"{trigger.when} {_phrase(address, finished=True)}", label)


def describe_moment(address: Address) -> str:
    """When a fault answers an operation itself: "at rank 0's first write to ckpt-4.pt", "when rank 0 opened it for writing"."""
    when = "when" if address.op in _VERBS or address.op == STEP else "at"
    return f"{when} {_phrase(address, finished=True)}"


def describe_path(path: str) -> str:
    """A `tier:relative/path` as a person writes it: the tier is told only of node-local storage."""
    tier, colon, relative = path.partition(":")
    if not colon or tier not in _ROOTS:
        return path or "an unnamed file"
    if relative in ("", "."):
        return _ROOTS[tier]
    return f"{relative} on node-local storage" if tier == "local" else relative


def describe_tier(tier: str) -> str:
    """A storage tier as a person calls it."""
    return "node-local storage" if tier == "local" else f"{tier} storage"


def describe_label(label: str) -> str:
    """What a rank was doing, by the text of its census label: "while saving step 4"; empty where the label says nothing."""
    stage, _, rest = label.partition(" of ")
    if rest == "the recovery":
        return _RECOVERING.get(stage, "while recovering")
    if (save := re.fullmatch(r"save (\d+)", rest)) is not None:
        return _DOING.get(stage, "during the save of step {}").format(save.group(1))
    return ""


def ordinal(number: int) -> str:
    """`first` for 1, in a word up to the tenth, then `11th`."""
    if 1 <= number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    ending = "th" if abs(number) % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(abs(number) % 10, "th")
    return f"{number}{ending}"


def plural(count: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _phrase(address: Address, *, finished: bool = False) -> str:
    """The operation without its label; with `finished`, an operation told by a verb is a clause in the past."""
    who = f"rank {address.rank}{_ACTORS.get(address.role, '')}"
    if address.op == STEP:
        step = address.path.partition(":")[2] or "its next one"
        return f"{who} trained step {step}" if finished else f"{who} about to train step {step}"
    if address.op == MARK:
        return _mark(who, address.path)
    if (verb := _VERBS.get(address.op)) is not None:
        return _acting(who, verb, address, finished=finished)
    name = _NOUNS.get(address.op, f"{address.op or 'operation'} on")
    count = ordinal(address.nth + 1)
    if address.role == "main":
        return f"{who}'s {count} {name} {_file(address)}"
    return f"the {count} {name} {_file(address)} by {who}"


def _acting(who: str, verb: _Verb, address: Address, *, finished: bool) -> str:
    again = f" for the {ordinal(address.nth + 1)} time" if address.nth else ""
    opening = address.op == "open_write"  # which begins a version, instead of working on it
    file = describe_path(address.path) if opening else _file(address)
    version = f", in its {ordinal(address.incarnation)} version" if opening and address.incarnation > 1 else ""
    return f"{who} {verb.done if finished else verb.doing} {file}{verb.after}{again}{version}"


def _file(address: Address) -> str:
    """The path, with its version where the rank opened the file anew meanwhile."""
    path = describe_path(address.path)
    return f"the {ordinal(address.incarnation)} version of {path}" if address.incarnation > 1 else path


def _mark(who: str, path: str) -> str:
    """A stage boundary, whose path reads `stage:savestarted in persist of save 4`."""
    report, _, label = path.partition(":")[2].partition(" in ")
    what = _REPORTS.get(report, f"reporting {report or 'a stage'}")
    return _with_label(f"{who} {what}", label)


def _with_label(phrase: str, label: str) -> str:
    doing = describe_label(label)
    return f"{phrase}, {doing}" if doing else phrase
