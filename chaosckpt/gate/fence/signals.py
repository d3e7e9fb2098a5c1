"""Calls that send signals: a job may signal its own processes, and no others.

A script that stops or kills its parent, or everything that it may, would hit the harness, which runs as the same user, and other
programs of that user. What a job asks with signal 0 (does that process live?) changes nothing, and passes.
"""

from __future__ import annotations

import errno
import os
import signal

from chaosckpt.gate.call import CONTINUE, Call, Reply
from chaosckpt.gate.tree import Handler, Tree


def _signed(call: Call, index: int) -> int:
    """Argument `index` as the signed 32-bit number that the kernel takes a process for."""
    value = call.word(index)
    return value - (1 << 32) if value >> 31 else value


def _kill(tree: Tree, call: Call) -> Reply:
    """kill(2): of one process, of a group, of the caller's own group, or of every process."""
    pid, number = _signed(call, 0), call.word(1)
    if not number or pid == 0:
        return CONTINUE  # the caller's group is of the job's session, which the harness began for it
    if pid == -1:
        return _refused(tree, number, "every process")
    if pid > 0:
        return _to(tree, pid, number)
    foreign = [other for other in _group(-pid) if not tree.processes.owns(other)]
    return _to(tree, foreign[0], number) if foreign else CONTINUE


def _to_first(tree: Tree, call: Call) -> Reply:
    """tkill and rt_sigqueueinfo: (thread or process, signal, ...)."""
    return _to(tree, _signed(call, 0), call.word(1))


def _to_second(tree: Tree, call: Call) -> Reply:
    """tgkill and rt_tgsigqueueinfo: (process, thread, signal, ...)."""
    return _to(tree, _signed(call, 0), call.word(2))


def _by_pidfd(tree: Tree, call: Call) -> Reply:
    """pidfd_send_signal(2): the process is that of the caller's descriptor."""
    try:
        with open(f"/proc/{call.process.pid}/fdinfo/{call.descriptor(0)}", encoding="ascii") as lines:
            pid = next((int(line[4:]) for line in lines if line.startswith("Pid:")), -1)
    except OSError:
        pid = -1
    return _to(tree, pid, call.word(1))


def _to(tree: Tree, pid: int, number: int) -> Reply:
    if not number or pid <= 0 or not os.path.exists(f"/proc/{pid}") or tree.processes.owns(pid):
        return CONTINUE  # where there is no such process, the kernel says so
    return _refused(tree, number, f"{_name(pid)}, which is no process of the job's")


def _refused(tree: Tree, number: int, whom: str) -> Reply:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    tree.refused(f"{name} to {whom}")
    return -errno.EPERM


def _group(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(name)) == group:
                found.append(int(name))
        except ProcessLookupError:
            continue
    return found


def _name(pid: int) -> str:
    """What a process is called; no number, because that differs from run to run."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as line:
            return f'"{line.read().strip()}"'
    except OSError:
        return "a process"


HANDLERS: dict[str, Handler] = {
    "kill": _kill,
    "tkill": _to_first,
    "tgkill": _to_second,
    "rt_sigqueueinfo": _to_first,
    "rt_tgsigqueueinfo": _to_second,
    "pidfd_send_signal": _by_pidfd,
}
