"""What a Ray cluster of our own leaves behind, and how it is cleared away, even when its driver was killed.

Every process of such a cluster, and every node and rank below it, carries a token of its session in its environment. A small
process beside the driver waits for the driver's end; unless that end was in order, it kills what carries the token and
removes the cluster's directory. Run as `python -m chaosckpt.campaign.ray_janitor FD TOKEN DIRECTORY`. It imports no Ray.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from chaosckpt.engine import storage

SESSION = "CHAOSCKPT_SESSION"
"""The variable with the token."""


def carrying(token: str) -> list[int]:
    """Processes of this user that were started with this token in their environment, this one left out."""
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
        if entry in environment.split(b"\0"):
            found.append(int(name))
    return found


def clear_away(token: str, directory: Path | None) -> None:
    """SIGKILL every process that carries the token, until there is none, and remove the marked directory."""
    while processes := carrying(token):
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    if directory is not None:
        storage.remove(directory)


class Janitor:
    """The process that waits for this one's end, in a session of its own: what a terminal sends to the driver doesn't reach it."""

    def __init__(self, token: str, directory: Path) -> None:
        waits, self._alive = os.pipe()
        command = [sys.executable, "-m", "chaosckpt.campaign.ray_janitor", str(waits), token, str(directory)]
        self._process = subprocess.Popen(command, pass_fds=[waits], stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(waits)

    def dismiss(self) -> None:
        """All is cleared away already: the janitor ends without doing anything."""
        os.write(self._alive, b".")
        os.close(self._alive)
        self._process.wait()


def main() -> None:
    """Wait for the end of the driver; clear away unless it was in order."""
    waits, token, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if os.read(waits, 1) == b"":
        clear_away(token, Path(directory))
        storage.sweep(Path(tempfile.gettempdir()))


if __name__ == "__main__":
    main()
