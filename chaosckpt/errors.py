"""The three ways in which chaosckpt itself fails: misuse, a broken plugin, trouble of the harness. A violation is none of them."""

from __future__ import annotations

import errno
import os


class ChaosckptError(Exception):
    """Base of every error that the command line prints as one sentence, without a traceback."""

    exit_code = 3


class UsageError(ChaosckptError):
    """The user asked for something impossible: the message shows the offending value and the next step."""

    exit_code = 2


class PluginError(UsageError):
    """A target, fault or invariant can't be loaded, or breaks the protocol of its kind."""


class HarnessError(ChaosckptError):
    """The harness, not the target, failed: a fork server that won't start, a lost node, a journal that can't be written."""


_ADVICE = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise the quota",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "raise this machine's limit of open files (fs.file-max)",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`)",
    errno.ENOMEM: "free some memory, or use fewer workers",
    errno.EROFS: "choose a writable directory",
    errno.EACCES: "choose a directory that this user may use",
    errno.EPERM: "choose a directory that this user may use",
    errno.EIO: "check the disk",
    errno.ENAMETOOLONG: "choose a shorter path",
}


def of_this_machine(error: OSError, then: str = "try again", place: str = "") -> str | None:
    """The sentence for an error that the machine's state explains (a full disk, a limit); None where it hints at a bug of ours.

    `then` is what to do once the machine is mended. `place` is what was being written, where the error names no file, as that of a
    write doesn't.
    """
    if error.errno not in _ADVICE:
        return None
    named = error.filename or (place if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS) else "")
    where = f": {named}" if named else ""
    return f"{os.strerror(error.errno)}{where}; {_ADVICE[error.errno]}, then {then}"
