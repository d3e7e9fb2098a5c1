"""What a Ray cluster of our own leaves behind, and how it is cleared away, even when its driver was killed.

Every process of such a cluster, and every node and rank below it, carries a token of its session in its environment. A small
process beside the driver waits for the driver's end; unless that end was in order, it kills what carries the token and
removes the cluster's directory. Run as `python -m chaosckpt.campaign.ray.reaper FD TOKEN DIRECTORY`. It imports no Ray.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from chaosckpt.engine.wire import storage

SESSION = "CHAOSCKPT_SESSION"
"""The variable with the token."""


def carrying(token: str, directory: Path | None = None) -> list[int]:
    """Processes of this user that were started with this token in their environment, this one left out.

    With the cluster's `directory`, processes of Ray that hold a file in it, too: they write their title over their environment.
    """
    entry = f"{SESSION}={token}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as stream:
                environment = stream.read()
        except OSError:
            continue  # it has ended, or is another user's
        if entry in environment.split(b"\0") or (directory is not None and _titled(name) and _holds(name, directory)):
            found.append(int(name))
    return found


def _titled(name: str) -> bool:
    """Whether this process shows a title of Ray's in place of its command."""
    try:
        with open(f"/proc/{name}/cmdline", "rb") as stream:
            return stream.read(5) == b"ray::"
    except OSError:
        return False


def _holds(name: str, directory: Path) -> bool:
    """Whether this process has a file below the directory open."""
    try:
        opened = [os.readlink(f"/proc/{name}/fd/{number}") for number in os.listdir(f"/proc/{name}/fd")]
    except OSError:
        return False  # it has ended, or is closing what it has; whoever clears away looks again
    return any(target.startswith(f"{directory.resolve()}/") for target in opened)


def reap(token: str, directory: Path | None) -> None:
    """SIGKILL every process that is of the session, until there is none, and remove the marked directory."""
    while processes := carrying(token, directory):
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    if directory is not None:
        storage.remove(directory)


class Reaper:
    """The process that waits for this one's end, in a session of its own: what a terminal sends to the driver doesn't reach it."""

    def __init__(self, token: str, directory: Path) -> None:
        waits, self._alive = os.pipe()
        command = [sys.executable, "-P", "-m", "chaosckpt.campaign.ray.reaper", str(waits), token, str(directory)]
        self._process = subprocess.Popen(command, pass_fds=[waits], stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(waits)

    def dismiss(self) -> None:
        """All is cleared away already: the reaper ends without doing anything."""
        os.write(self._alive, b".")
        os.close(self._alive)
        self._process.wait()


def main() -> None:
    """Wait for the end of the driver; clear away unless it was in order."""
    waits, token, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if os.read(waits, 1) == b"":
        reap(token, Path(directory))
        storage.sweep(Path(tempfile.gettempdir()))


if __name__ == "__main__":
    main()
