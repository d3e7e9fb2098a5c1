"""The four ways in which chaosckpt itself can fail; a violation found in a target is none of them."""

from __future__ import annotations

import errno
import os


class ChaosckptError(Exception):
    """Base of every error that the command line prints as one sentence, without a traceback."""

    exit_code = 3


class UsageError(ChaosckptError):
    """The user asked for something that can't be: the message shows the offending value and the next step."""

    exit_code = 2


class PluginError(UsageError):
    """A target, fault or invariant can't be loaded, or breaks the protocol that it signed up for."""


class HarnessError(ChaosckptError):
    """The harness, not the target, failed: a fork server that won't start, a lost node, a full journal disk."""


_ADVICE = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there, or raise the quota",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "raise the limit of open files of this machine",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`)",
    errno.ENOMEM: "free memory, or run fewer workers",
    errno.EROFS: "name a directory that can be written",
    errno.EACCES: "name a directory that this user may use",
    errno.EPERM: "name a directory that this user may use",
    errno.EIO: "look at the disk",
    errno.ENAMETOOLONG: "name a shorter path",
}


def of_this_machine(error: OSError) -> str | None:
    """The sentence for an error that the machine's state explains (a full disk, a limit); None where it hints at a fault of ours."""
    if error.errno not in _ADVICE:
        return None
    where = f" ({error.filename})" if error.filename else ""
    return f"the system refused what chaosckpt needs{where}: {os.strerror(error.errno)}; {_ADVICE[error.errno]}, then try again"
