"""What chaosckpt needs from a machine: each need is checked by trying it, and comes with a remedy."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

from chaosckpt.engine.node import network
from chaosckpt.engine.runner import gate_mode

State = Literal["ok", "limited", "missing"]
DESCRIPTORS = 4096
SPACE_MB = 1024
PROCESSES = 1024
FEWEST_PROCESSES = 320
"""A campaign with two workers had 266 processes and threads at most, Ray's included; each worker adds its own."""
SHARED_MEMORY_MB = 128
PATIENCE_SECONDS = 120


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One need: what was found, and what to do about it. limited: chaosckpt works with less. missing: it does not work."""

    name: str
    state: State
    found: str
    remedy: str = ""


def run() -> tuple[Check, ...]:
    """Check everything. Takes some seconds, because torch and Ray are really imported."""
    checks: tuple[Callable[[], Check], ...] = (
        python,
        kernel,
        gate,
        ptrace,
        networks,
        descriptors,
        processes,
        shared_memory,
        temporary_space,
        torch,
        ray,
    )
    return tuple(check() for check in checks)


def python() -> Check:
    """The interpreter."""
    return Check(name="python", state="ok", found=platform.python_version())


def kernel() -> Check:
    """The kernel's release: the gate needs 5.14, and 5.19 for all of it."""
    release = platform.release()
    if platform.system() != "Linux":
        return Check(
            name="kernel", state="missing", found=platform.system(), remedy="run chaosckpt on Linux 5.14 or newer"
        )
    number = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdecimal())
    if number >= (5, 19):
        return Check(name="kernel", state="ok", found=release)
    if number >= (5, 14):
        remedy = "works; from 5.19 on, signals no longer interrupt a system call that the gate is answering"
        return Check(name="kernel", state="limited", found=release, remedy=remedy)
    remedy = 'upgrade to 5.19 or newer (at least 5.14); until then run.gate = "none" kills at stage boundaries only'
    return Check(name="kernel", state="missing", found=release, remedy=remedy)


def gate() -> Check:
    """Faults at exact operations: seccomp user notification, tried in a child process."""
    name = "gate"
    found = gate_mode.tried()
    if not found.works:
        remedy = (
            "allow seccomp and process_vm_readv in the sandbox (Docker: the default profile does; Kubernetes: "
            "seccompProfile RuntimeDefault), without another seccomp supervisor; until then "
            'run.gate = "none" kills at stage boundaries only'
        )
        return Check(name=name, state="missing", found=found.problem, remedy=remedy)
    described = f"seccomp user notification works, up to {found.tracked_descriptors} tracked files per rank"
    if not found.wait_killable:
        return Check(name=name, state="limited", found=described, remedy="works; Linux 5.19 adds WAIT_KILLABLE_RECV")
    return Check(name=name, state="ok", found=described)


def ptrace() -> Check:
    """Yama's scope: a supervisor reads the memory of its descendants, which scopes 0 and 1 allow."""
    path = Path("/proc/sys/kernel/yama/ptrace_scope")
    try:
        scope = path.read_text().strip()
    except OSError:
        return Check(name="ptrace", state="ok", found="Yama is not active; the kernel's own rules apply")
    if scope in ("0", "1"):
        return Check(name="ptrace", state="ok", found=f"Yama scope {scope}")
    return Check(
        name="ptrace",
        state="missing",
        found=f"Yama scope {scope}",
        remedy="run as root: sysctl kernel.yama.ptrace_scope=1",
    )


def networks() -> Check:
    """A network of its own for each worker of a command, so that all of them can use one port."""
    name, problem = "networks", network.problem()
    if not problem:
        return Check(name=name, state="ok", found="each worker of a command has a network of its own")
    remedy = (
        "commands are tested with one worker; allow unprivileged user namespaces (as root: sysctl user.max_user_namespaces=10000, "
        "on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), also in the sandbox"
    )
    return Check(name=name, state="limited", found=problem, remedy=remedy)


def descriptors() -> Check:
    """The hard limit of open files: tracked files get high numbers below it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
    if hard == resource.RLIM_INFINITY or hard >= DESCRIPTORS:
        return Check(name="open files", state="ok", found=f"hard limit {shown}")
    remedy = f"raise it to {DESCRIPTORS} (`ulimit -Hn {DESCRIPTORS}` as root, or LimitNOFILE= of the service)"
    return Check(name="open files", state="limited", found=f"hard limit {shown}", remedy=remedy)


def processes() -> Check:
    """How many more processes and threads this user may start: Ray alone starts hundreds of threads."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if resource.RLIM_INFINITY in (soft, hard) or os.geteuid() == 0:
        return Check(name="processes", state="ok", found="no limit for this user")
    left = soft - _threads_of_this_user()
    found = f"limit {soft}, of which {max(0, left)} are left"
    if left >= PROCESSES:
        return Check(name="processes", state="ok", found=found)
    remedy = (
        f"raise the limit by `ulimit -u {soft + PROCESSES}` (hard limit {hard}), or end other programs of this user"
    )
    return Check(
        name="processes", state="limited" if left >= FEWEST_PROCESSES else "missing", found=found, remedy=remedy
    )


def _threads_of_this_user() -> int:
    """Threads of all processes of this user, which is what the limit counts."""
    found = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == os.getuid():
                found += len(os.listdir(path / "task"))
        except OSError:
            continue  # it ended meanwhile
    return found


def shared_memory() -> Check:
    """Free space in /dev/shm, where Ray keeps its objects."""
    return _space(
        "shared memory",
        Path("/dev/shm"),
        SHARED_MEMORY_MB,
        "give the container more shared memory (Docker: --shm-size=1g)",
    )


def temporary_space() -> Check:
    """Free space where storage tiers are by default."""
    return _space(
        "temporary space", Path(tempfile.gettempdir()), SPACE_MB, "free some space, or set TMPDIR to another directory"
    )


def _space(name: str, path: Path, wanted_mb: int, remedy: str) -> Check:
    try:
        free_mb = shutil.disk_usage(path).free >> 20
    except OSError as error:
        return Check(name=name, state="missing", found=f"{path}: {error.strerror}", remedy=remedy)
    if not os.access(path, os.W_OK):
        return Check(name=name, state="missing", found=f"{path} is not writable", remedy=remedy)
    state: State = "ok" if free_mb >= wanted_mb else "limited"
    return Check(name=name, state=state, found=f"{free_mb} MB free in {path}", remedy="" if state == "ok" else remedy)


def torch() -> Check:
    """Torch, with the gloo backend, through which ranks on CPUs talk."""
    code = "import torch.distributed as d; print(d.is_available() and d.is_gloo_available())"
    check = _importable("torch", code, "pip install torch; the CPU build is enough")
    if check.state == "ok" and "True" not in check.found:
        remedy = "install a build of torch with torch.distributed and gloo; the wheels on PyPI have both"
        return Check(name="torch", state="missing", found=f"{version('torch')} without gloo", remedy=remedy)
    return (
        check if check.state != "ok" else Check(name="torch", state="ok", found=f"{version('torch')}, gloo available")
    )


def ray() -> Check:
    """Ray, on which `fuzz` runs targets; `reproduce`, `judge`, `measure` and `drill` need none."""
    check = _importable(
        "ray", "import ray", "pip install ray; `reproduce`, `judge`, `measure` and `drill` work without it"
    )
    return check if check.state != "ok" else Check(name="ray", state="ok", found=version("ray"))


def _importable(package: str, code: str, remedy: str) -> Check:
    try:
        found = version(package)
    except PackageNotFoundError:
        return Check(name=package, state="missing", found="not installed", remedy=remedy)
    done = _python("-c", code)
    if done.returncode == 0:
        return Check(name=package, state="ok", found=done.stdout)
    lines = done.stderr.strip().splitlines()
    problem = lines[-1] if lines else f"the import ended with {done.returncode}"
    return Check(
        name=package, state="missing", found=f"{found} is installed but can't be imported: {problem}", remedy=remedy
    )


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {PATIENCE_SECONDS} seconds")
