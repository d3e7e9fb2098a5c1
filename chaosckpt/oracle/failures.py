"""What a rank's failure says: whether it names what it looked for, and whether it only followed from a peer's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaosckpt.model.journal import Raised
from chaosckpt.oracle.view import AttemptView, Track

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
PEER = re.compile(
    r"connection (?:closed|reset|refused)|peer|gloo|process ?group|collective|barrier|broken pipe|tcpstore|"
    r"wait timeout|timed out waiting",
    re.IGNORECASE,
)


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
    return not names_its_subject(error.message) and PEER.search(error.message) is not None


def ended_before_recovery(attempt: AttemptView) -> bool:
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
