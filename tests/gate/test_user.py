"""The gate as an ordinary user: supervisor and rank both run without privileges."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import traceback
from pathlib import Path

import torch
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from chaosckpt.gate import Root
from chaosckpt.gate.replay import replay
from chaosckpt.model.fault import Decision, Hold
from chaosckpt.model.operation import Operation
from tests.gate.driver import run, snapshot

NOBODY = 65534
PR_SET_DUMPABLE = 4


def scene(top: Path) -> None:
    """Trace, replay, kill, and processes, once through."""
    for name in ("disk", "again", "torn"):
        (top / name).mkdir()
    disk = top / "disk"

    def program() -> None:
        dcp_save({"weights": torch.arange(1000.0)}, checkpoint_id=disk / "step", no_dist=True)
        first = os.open(disk / "f", os.O_RDWR | os.O_CREAT, 0o400)
        os.write(first, b"1")
        if not (pid := os.fork()):
            os.write(first, b"2")
            os._exit(0)
        os.waitpid(pid, 0)
        shutil.copyfile(disk / "f", disk / "g")
        os.mkdir(disk / "closed", 0)
        try:
            (disk / "closed/x").touch()
        except PermissionError:
            pass
        else:
            raise AssertionError("this is a privileged user")

    tree = run(program, roots=[Root("t", str(disk))])
    assert tree.status == 0
    os.chmod(disk / "closed", 0o700)
    replay(tree.observed, {"t": top / "again"})
    os.chmod(top / "again/closed", 0o700)
    assert snapshot(top / "again") == snapshot(disk)

    def decide(it: Operation) -> Decision:
        return Hold("torn", 3) if it.address.op == "write" else None

    run(lambda: (top / "torn/f").write_bytes(b"12345"), roots=[Root("t", str(top / "torn"))], decide=decide)
    assert (top / "torn/f").read_bytes() == b"123"


def test_an_ordinary_user_needs_no_privilege() -> None:
    """Run as nobody when started as root, else as who we are."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        top = Path(folder)
        if os.geteuid() != 0:
            scene(top)
            return
        os.chown(top, NOBODY, NOBODY)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                # A process that changed its user is closed to others until it says otherwise; a fresh exec would be open.
                ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
                scene(top)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
