"""What a measuring rank reads of itself in /proc and on its storage tiers; nothing here touches what it measures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from chaosckpt.engine.wire import storage
from chaosckpt.engine.wire.process_tree import descendants
from chaosckpt.training.metered import Counters, MeteredLatency, Seccomp, TierSize

KIB = 1024
PROBE_BYTES = 4096
_COUNTERS = {
    "read_bytes": "read_bytes",
    "rchar": "read_chars",
    "syscr": "read_operations",
    "write_bytes": "write_bytes",
    "wchar": "write_chars",
    "syscw": "write_operations",
}


class RankInstruments:
    """Counters and memory of this process and what it has started; the sizes of these tiers, given as tier -> directory."""

    def __init__(self, tiers: Mapping[str, str]) -> None:
        self.peaks_reset = True
        """False where the kernel didn't let the largest resident memory be set back: it is then of the process's whole life."""
        self._tiers = tiers

    def counters(self) -> Counters:
        """What was asked of storage so far; a process that has ended is counted by its parent, once that has waited for it."""
        total = dict.fromkeys(_COUNTERS.values(), 0)
        for pid in descendants(os.getpid()):
            for key, value in _fields(f"/proc/{pid}/io").items():
                if key in _COUNTERS:
                    total[_COUNTERS[key]] += int(value)
        return Counters(**total)

    def resident_bytes(self) -> int:
        """Resident memory now; pages shared between processes are counted for each."""
        return self._memory("VmRSS")

    def reset_peak(self) -> None:
        """From now on `peak_bytes` is the largest since now."""
        for pid in descendants(os.getpid()):
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                self.peaks_reset = False

    def peak_bytes(self) -> int:
        """The largest resident memory; where there are several processes, the sum of the largest of each."""
        return self._memory("VmHWM")

    def storage(self) -> tuple[TierSize, ...]:
        """What lies on the tiers now."""
        return tuple(tier_size(tier, directory) for tier, directory in sorted(self._tiers.items()))

    def _memory(self, key: str) -> int:
        found = (_fields(f"/proc/{pid}/status").get(key, "0 kB") for pid in descendants(os.getpid()))
        return sum(int(value.split()[0]) * KIB for value in found)


def seccomp(pid: int | str = "self") -> Seccomp:
    """Whether a process has system call filters, its own or inherited ones."""
    found = _fields(f"/proc/{pid}/status")
    return Seccomp(int(found.get("Seccomp", "0")), int(found.get("Seccomp_filters", "0")))


def tier_size(tier: str, directory: str) -> TierSize:
    """The files below a directory. A file that goes away meanwhile isn't counted, nor are directories themselves."""
    files, apparent, allocated = 0, 0, 0
    seen: set[tuple[int, int]] = set()
    for _, path in storage.files(tier, directory):
        with suppress(FileNotFoundError):
            found = os.lstat(path)
            if (found.st_dev, found.st_ino) in seen:
                continue  # another name of the same file takes no further space
            seen.add((found.st_dev, found.st_ino))
            files, apparent, allocated = files + 1, apparent + found.st_size, allocated + found.st_blocks * 512
    return TierSize(tier=tier, files=files, apparent_bytes=apparent, allocated_bytes=allocated)


def latency(tier: str, directory: str, name: str, clock: Callable[[], float], repeats: int) -> MeteredLatency:
    """Time single operations on a file of 4 KiB in a directory that is the harness's own; leaves nothing there."""
    seconds: dict[str, list[float]] = {"write": [], "fsync": [], "rename": [], "stat": []}
    old, new = os.path.join(directory, f"{name}.old"), os.path.join(directory, f"{name}.new")
    data = bytes(PROBE_BYTES)

    def timed(operation: str, action: Callable[[], object]) -> None:
        began = clock()
        action()
        seconds[operation].append(clock() - began)

    try:
        for _ in range(repeats):
            descriptor = os.open(old, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                timed("write", lambda at=descriptor: os.write(at, data))  # type: ignore[misc]
                timed("fsync", lambda at=descriptor: os.fsync(at))  # type: ignore[misc]
            finally:
                os.close(descriptor)
            timed("rename", lambda: os.rename(old, new))
            timed("stat", lambda: os.stat(new))
    finally:
        for path in (old, new):
            with suppress(FileNotFoundError):
                os.unlink(path)
    return MeteredLatency(tier=tier, **{f"{operation}_seconds": tuple(found) for operation, found in seconds.items()})


def _fields(path: str) -> dict[str, str]:
    """`key: value` lines of a file of /proc; empty where its process has ended."""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
