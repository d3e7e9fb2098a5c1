"""What a failure says: whether it names what it looked for, whether it only followed from a peer's, and what else may be behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from chaosckpt.model import journal as j
from chaosckpt.model.journal import Raised
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.view import TargetAttempt, Track
from chaosckpt.oracle.phrasing import ending, short

_PATH = re.compile(r"(?<![\w.])[\w.*:~-]*/[\w./*:~-]*\w")
_FILE = re.compile(
    r"(?<![\w/])[\w*-]*\.(?:pt|pth|ckpt|bin|json|safetensors|distcp|metadata|npz|npy|tmp|done|txt|marker|complete)\b",
    re.IGNORECASE,
)
_CHECKPOINT = re.compile(
    r"checkpoint\w*\b.*?\b(?:(?:in|under|at|from|on|below) \S*\w|step[ _]?\d+)", re.IGNORECASE | re.DOTALL
)
_ELSE = re.compile(r"^https?://|\.(?:py|cc|cpp|cu|h|hpp|rs)(?::\d+)*$")
"""Paths that name the code that failed, as in gloo's `[/src/transport/tcp/pair.cc:553] Connection closed by peer`, or a page."""
_CODE_LINE = re.compile(r'^\s*File ".*", line \d+.*$', re.MULTILINE)
_PEER = re.compile(
    r"connection (?:closed|reset|refused)|peer|gloo|process ?group|collective|barrier|broken pipe|tcpstore|"
    r"wait timeout|timed out waiting",
    re.IGNORECASE,
)
_PRINTED = re.compile(
    r"^(?:\[rank(?P<rank>\d+)\]:)?\s*(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)"
    r"(?:: +(?P<message>\S.*)|(?<=Error)|(?<=Exception)|(?<=Exit)|(?<=Interrupt))$"
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


def failure(track: Track) -> str:
    """How a rank's recovery failed, in words: the exception, or the exit."""
    if track.recovery_error is not None:
        error = track.recovery_error.event
        return f"{error.error_type}: {short(error.message)}"
    if track.exit is not None:
        return ending(track.exit.event)
    return "no result"


def message(track: Track) -> str:
    """What a rank said last when its recovery failed: its exception's message, or the end of its standard error."""
    if track.recovery_error is not None:
        return track.recovery_error.event.message
    tail = track.exit.event.stderr_tail.strip() if track.exit is not None else ""
    return tail.splitlines()[-1] if tail else ""


def names_its_subject(text: str) -> bool:
    """True when an error names what was looked for: a path, a file's name, or a checkpoint with its place.

    Lines of a traceback name the code, so they don't count, and neither do paths of source files or pages.
    """
    said = _CODE_LINE.sub("", text)
    paths = [path for path in _PATH.findall(said) if not _ELSE.search(path)]
    return bool(paths or _FILE.search(said) or _CHECKPOINT.search(said))


def lost_its_peer(track: Track) -> bool:
    """True when a rank's recovery failed in communication, as it does after a peer has failed."""
    error = track.recovery_error
    return error is not None and _is_peer_error(error.event)


def _is_peer_error(error: Raised) -> bool:
    if error.error_type.startswith("Dist"):
        return True
    return not names_its_subject(error.message) and _PEER.search(error.message) is not None


def ended_before_recovery(attempt: TargetAttempt) -> bool:
    """True when the job ended before any rank began to recover, and by no error of the target's own: it tells nothing
    of it."""
    if any(track.phase != "absent" for track in attempt.tracks):
        return False
    return all(_is_peer_error(at.event) for at in attempt.all(Raised))


def root(failed: Sequence[Track]) -> Track | None:
    """The rank from whose failure the others' probably follow: one with an error of its own before one that lost its
    peer."""
    return min(failed, key=lambda track: (lost_its_peer(track), track.rank), default=None)


def root_error(errors: Sequence[Raised]) -> Raised | None:
    """The same for errors anywhere in an attempt."""
    return min(errors, key=lambda error: (_is_peer_error(error), error.rank), default=None)


class PrintedError(NamedTuple):
    """What a command printed of its end: the class of the error and its line, and the rank whose line says so itself.

    The class is empty where no line looks like an error; the line is then the last one printed.
    """

    kind: str
    line: str
    rank: int | None = None


def printed_error(attempt: CommandAttempt) -> PrintedError:
    """The error that ended an attempt; of several that of a rank that didn't only lose its peer."""
    lines = attempt.tail.strip().splitlines()
    found = [match for line in lines if (match := _PRINTED.match(line)) and not _LOGGED.search(match["kind"])]
    own = [match for match in found if names_its_subject(match["message"] or "")] or [
        match for match in found if not _PEER.search(match["message"] or "")
    ]
    if own or found:
        last = (own or found)[-1]
        line = ": ".join(filter(None, last.group("kind", "message")))[:_SHOWN]
        return PrintedError(last["kind"].rpartition(".")[2], line, int(last["rank"]) if last["rank"] else None)
    return PrintedError("", lines[-1].strip()[:_SHOWN] if lines else "no output")


def names_a_checkpoint(attempt: CommandAttempt) -> bool:
    """Whether what it printed names what it looked for; the code that a traceback shows doesn't count, nor what torchrun says."""
    return names_its_subject(_CODE.sub("", _LAUNCHER.sub("", attempt.tail)))


def excuse(view: CommandView, attempt: CommandAttempt) -> str | None:
    """Why the failure of this attempt is no evidence against the command; None where nothing excuses it."""
    if attempt.outcome != "failed":
        return None
    refused = _refused(attempt) - (_refused(view.attempts[0]) if attempt is not view.attempts[0] else set())
    if refused:
        return f"{sorted(refused)[0]} (--allow, --allow-network)"
    if attempt.disturbed:
        return None
    found = attempt.exit.event if attempt.exit is not None else None
    if found is not None and found.by == "self" and found.signal == 9:
        return "a process other than chaosckpt killed it, as the kernel does when memory is short"
    gone = next((word for word in view.command.argv if word.endswith(".py") and _is_gone(word, attempt.tail)), None)
    if gone is not None:
        return f"{gone} no longer exists"
    machine = _MACHINE.search(attempt.tail)
    return f"the machine lacked a resource ({machine[0]})" if machine is not None else None


def _is_gone(script: str, tail: str) -> bool:
    """Whether the interpreter says that there is no such script: it was moved or removed while the campaign ran."""
    path = r"'(?:[^']*/)?" + re.escape(script.rpartition("/")[2]) + "'"
    return re.search(rf"(?:can't open file |No such file or directory: ){path}", tail) is not None


def _refused(attempt: CommandAttempt) -> set[str]:
    """What the guard refused to it; a ring for asynchronous operations is refused by the gate, and does no harm."""
    return {
        at.event.what for at in attempt.all(j.Untraced) if at.event.refused and at.event.what.endswith("was refused")
    }
