"""The file system under a path, from mount tables as kernels print them, and from this machine's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaosckpt.measure.file_system import KINDS, UNKNOWN, describe, documented, file_systems, mount_of, parse

TABLE = r"""
21 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
22 21 0:20 / /proc rw,nosuid shared:12 - proc proc rw
30 21 0:44 / /data rw,relatime shared:20 - nfs4 storage:/export/data rw,vers=4.2,nocto,hard,acregmax=60
31 30 0:45 / /data/scratch rw,relatime master:3 propagate_from:2 - lustre 10.0.0.1@o2ib:/scratch rw,flock
32 21 259:3 /projects/run /data\040with\040spaces ro,relatime - xfs /dev/disk\134by-id rw,attr2
33 21 0:50 /@home /home rw,noatime - btrfs /dev/sdb1 rw,compress=zstd:1,subvol=/@home
34 21 0:60 / /over rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile
35 21 0:61 / /hash\043tab\011 rw - fuse.sshfs user@host:/srv rw
36 21 0:62 / /hidden/below rw - tmpfs old rw
37 21 0:63 / /hidden rw - ramfs above rw
38 37 0:64 / /hidden rw - tmpfs top rw,size=1k
39 21 0:65 / /odd rw - strangefs none rw
40 21 0:66 / /bucket rw - fuse.unheardof bucket rw
""".strip()
MOUNTS = parse(TABLE)


@pytest.mark.parametrize(
    ("path", "kind", "device", "point"),
    [
        ("/", "ext4", "/dev/nvme0n1p2", "/"),
        ("/database/x", "ext4", "/dev/nvme0n1p2", "/"),
        ("/data", "nfs4", "storage:/export/data", "/data"),
        ("/data/run/1", "nfs4", "storage:/export/data", "/data"),
        ("/data/scratch/run", "lustre", "10.0.0.1@o2ib:/scratch", "/data/scratch"),
        ("/data with spaces/a", "xfs", "/dev/disk\\by-id", "/data with spaces"),
        ("/home/someone", "btrfs", "/dev/sdb1", "/home"),
        ("/hash#tab\t/a", "fuse.sshfs", "user@host:/srv", "/hash#tab\t"),
        ("/hidden", "tmpfs", "top", "/hidden"),
        ("/hidden/below/a", "tmpfs", "top", "/hidden"),
    ],
)
def test_the_mount_of_a_path(path, kind, device, point):
    """The mount is the one that walking down the path ends in: the deepest, the topmost, never a hidden one."""
    found = mount_of(path, MOUNTS)
    assert found is not None
    assert (found.kind, found.source, found.point) == (kind, device, point)


def test_bind_mounts_and_subvolumes_are_told():
    """A mount of another directory than the root of its file system says which, and a read-only mount is read-only."""
    bound = describe("shared", "/data with spaces/run", MOUNTS)
    assert (bound.root, bound.mount_options) == ("/projects/run", "ro,relatime,attr2")
    assert describe("shared", "/home/x", MOUNTS).root == "/@home"


def test_lines_that_are_no_mounts():
    """Broken lines are passed over, an empty source is kept as one."""
    assert parse("rubbish\n1 2 3\n\n5 x 0:1 / / rw - ext4 a rw") == ()
    (mount,) = parse("5 1 0:1 / /a rw -  ".replace("-  ", "- tmpfs  rw"))
    assert mount.source == ""


def test_no_mount_at_all():
    """Where no mount holds the path the kind is unknown, and said to be."""
    found = describe("shared", "/a", ())
    assert (found.kind, found.documented, found.source) == ("unknown", UNKNOWN, "")


def test_symbolic_links_are_followed(tmp_path):
    """A path through a link lies where the link leads, also when its end doesn't exist yet."""
    (tmp_path / "link").symlink_to("/proc")
    assert describe("shared", tmp_path / "link" / "absent", MOUNTS).kind == "proc"


def test_this_machine():
    """The kernel's own device numbers agree with the mount that was found for this file's directory and for /proc."""
    found = {system.tier: system for system in file_systems([("here", Path(__file__).parent), ("proc", "/proc/self")])}
    assert found["proc"].kind == "proc"
    assert os.stat(found["here"].mount_point).st_dev == os.stat(Path(__file__).parent).st_dev
    assert found["here"].kind != "unknown"


def test_options_that_weaken_are_told():
    """An option that takes a guarantee away is told beside what is documented; one that merely begins alike is not."""
    assert "nocto: an open need not see" in describe("shared", "/data/x", MOUNTS).documented
    assert "no sync reaches the disk" in describe("shared", "/over", MOUNTS).documented
    assert "actimeo: attributes" in documented("nfs", "rw,actimeo=600")[0]
    assert "nocto" not in documented("nfs", "rw,noctopus")[0]


def test_unknown_kinds_say_so():
    """A kind that isn't in the table is said to be unknown; an unheard-of program behind FUSE is told as FUSE."""
    assert documented("strangefs", "rw") == (UNKNOWN, "")
    assert documented("fuse.unheardof", "rw") == documented("fuse", "rw")
    assert documented("fuseblk", "rw") == documented("fuse", "rw")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_source(kind):
    """What is said of a kind stands in a document that is named."""
    assert KINDS[kind].documented
    assert KINDS[kind].source


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "nfs", "nfs4", "lustre", "gpfs", "fuse"])
def test_the_kinds_of_clusters_are_known(kind):
    """The kinds that clusters use are in the table."""
    assert kind in KINDS
