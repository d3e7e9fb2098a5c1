"""How a command failed by itself: the error that it printed, and what else than a bad recovery may be behind it."""

from __future__ import annotations

import re

from chaosckpt.model import journal as j
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.failures import PEER, names_its_subject

_ERROR = re.compile(
    r"^(?:\[rank\d+\]:)?\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: +(\S.*)|(?<=Error)|(?<=Exception)|(?<=Exit)|(?<=Interrupt))$"
)
_LOGGED = re.compile(r"(?:^|\.)(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|NOTE|\w*Warning)$")
_CODE = re.compile(r"^(?:\[rank\d+\]:)?\s{4,}.*$", re.MULTILINE)
"""The lines of code that a traceback shows."""
_LAUNCHER = re.compile(
    r"^[EWI]\d{4} \S+ \d+ torch/distributed/.*$|^.*\bChildFailedError:[^\n]*\n=[\s\S]*", re.MULTILINE
)
"""What torchrun says of its ranks' ends: it names the interpreter and a page to read."""
_MACHINE = re.compile(
    r"Address already in use|EADDRINUSE|Cannot allocate memory|Too many open files|No space left on device|"
    r"exitcode\s*: -9|Signal 9 \(SIGKILL\)"
)
_SHOWN = 200


def error(launch: Launch) -> tuple[str, str]:
    """(class, line) of the error that ended a launch; of several that of a rank that didn't only lose its peer.

    The class is empty where no line looks like an error; the line is then the last one printed.
    """
    lines = launch.tail.strip().splitlines()
    found = [match for line in lines if (match := _ERROR.match(line)) and not _LOGGED.search(match[1])]
    own = [match for match in found if names_its_subject(match[2] or "")] or [
        match for match in found if not PEER.search(match[2] or "")
    ]
    if own or found:
        last = (own or found)[-1]
        return last[1].rpartition(".")[2], ": ".join(filter(None, last.groups()))[:_SHOWN]
    return "", (lines[-1].strip()[:_SHOWN] if lines else "it printed nothing")


def names_a_checkpoint(launch: Launch) -> bool:
    """Whether what it printed names what it looked for; the code that a traceback shows doesn't count, nor what torchrun says."""
    return names_its_subject(_CODE.sub("", _LAUNCHER.sub("", launch.tail)))


def excuse(view: CommandView, launch: Launch) -> str | None:
    """Why the failure of this launch is no evidence against the command; None where nothing excuses it."""
    if launch.outcome != "failed":
        return None
    refused = _refused(launch) - (_refused(view.launches[0]) if launch is not view.launches[0] else set())
    if refused:
        return f"{sorted(refused)[0]} (--allow, --allow-network)"
    if launch.disturbed:
        return None
    found = launch.exit.event if launch.exit is not None else None
    if found is not None and found.by == "self" and found.signal == 9:
        return "something outside the harness killed it, as the system does when memory is short"
    gone = next((word for word in view.command.argv if word.endswith(".py") and _is_gone(word, launch.tail)), None)
    if gone is not None:
        return f"{gone} is not there any more"
    machine = _MACHINE.search(launch.tail)
    return f"the machine lacked something ({machine[0]})" if machine is not None else None


def _is_gone(script: str, tail: str) -> bool:
    """Whether the interpreter says that there is no such script: it was moved or removed while the campaign ran."""
    path = r"'(?:[^']*/)?" + re.escape(script.rpartition("/")[2]) + "'"
    return re.search(rf"(?:can't open file |No such file or directory: ){path}", tail) is not None


def _refused(launch: Launch) -> set[str]:
    """What the guard refused to it; a ring for asynchronous operations is refused by the gate, and does no harm."""
    return {
        at.event.what for at in launch.all(j.Untraced) if at.event.refused and at.event.what.endswith("was refused")
    }
