"""Which file system a path lies on, and what its documentation guarantees about rename, fsync and reading after a close."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaosckpt.measure.measurement import FileSystem

_KERNEL = "https://docs.kernel.org/filesystems"
UNKNOWN = "unknown kind of file system: nothing is known here of its rename, fsync and reading after a close"
_LOCAL = (
    "rename replaces a name atomically for processes on this machine; after a power loss only what was synced is certain: "
    "fsync of the file for its data, fsync of the directory for its name (fsync(2))"
)


class Kind(msgspec.Struct, frozen=True):
    """What is documented of one kind. `weakened` maps a mount option, or the beginning of one, to what it takes away."""

    documented: str
    source: str
    weakened: dict[str, str] = {}


_NFS = Kind(
    "close-to-open: close writes back to the server, and an open on another machine asks it anew; between them, and for names and "
    "directory listings, a client may answer from its attribute cache for up to acregmax or acdirmax seconds. rename is atomic on the "
    "server, but a repeated request may be answered with an error though it was done. fsync returns once the server holds it safely",
    "nfs(5), DATA AND METADATA COHERENCE; RFC 1813 and RFC 8881",
    {
        "nocto": "nocto: an open need not see what another machine has closed",
        "soft": "soft: a write that times out fails, and its data may be lost",
        "actimeo": "actimeo: attributes and listings may be that many seconds old",
        "lookupcache=all": "lookupcache=all: a name that was absent may be taken for absent for a while",
    },
)
_SMB = Kind(
    "caching follows leases of the server; with cache=loose other machines may see old data. rename is a request to the server, which "
    "decides whether it is atomic; fsync asks the server to flush",
    "mount.cifs(8)",
    {
        "cache=loose": "cache=loose: other machines may see old data",
        "nostrictsync": "nostrictsync: fsync isn't sent to the server",
    },
)
_SHARED = "what one node has written is seen by the others at once, as on one machine"

KINDS: dict[str, Kind] = {
    "ext4": Kind(
        f"{_LOCAL}. With data=ordered, the default, data goes to disk before the metadata that names it is committed; auto_da_alloc, "
        "the default, writes a file back when it is renamed over another",
        "https://docs.kernel.org/admin-guide/ext4.html",
        {
            "data=writeback": "data=writeback: after a crash a file may hold old data",
            "noauto_da_alloc": "noauto_da_alloc: a file renamed over another may be empty after a crash unless it was synced",
            "barrier=0": "barrier=0: a power loss may undo what was synced",
            "nobarrier": "nobarrier: a power loss may undo what was synced",
        },
    ),
    "xfs": Kind(
        f"{_LOCAL}. Only metadata is journalled: a file that was renamed but not synced may be empty after a crash",
        "https://xfs.org/index.php/XFS_FAQ; https://docs.kernel.org/admin-guide/xfs.html",
        {"nobarrier": "nobarrier: a power loss may undo what was synced"},
    ),
    "btrfs": Kind(
        f"{_LOCAL}. Data and metadata bear checksums; since Linux 3.17 a file renamed over another needs fsync like any other",
        "https://btrfs.readthedocs.io/en/latest/btrfs-man5.html; https://gitlab.gnome.org/GNOME/glib/-/merge_requests/2425",
        {
            "nodatasum": "nodatasum: data bears no checksums",
            "nodatacow": "nodatacow: data is overwritten in place and bears no checksums",
            "nobarrier": "nobarrier: a power loss may undo what was synced",
        },
    ),
    "zfs": Kind(
        f"{_LOCAL}. fsync waits for the intent log, unless the dataset's property sync is disabled, which mount options don't show",
        "https://openzfs.github.io/openzfs-docs/man/master/7/zfsprops.7.html",
    ),
    "tmpfs": Kind(
        "lives in memory, and in swap: rename is atomic, fsync has nothing to do, and nothing outlives the machine or the mount",
        f"{_KERNEL}/tmpfs.html",
    ),
    "ramfs": Kind(
        "lives in memory: nothing outlives the machine or the mount", f"{_KERNEL}/ramfs-rootfs-initramfs.html"
    ),
    "overlay": Kind(
        "what is written goes to the upper directory, whose own file system decides about fsync and power loss; rename of a directory "
        "of a lower layer fails with EXDEV unless redirect_dir is on",
        f"{_KERNEL}/overlayfs.html",
        {
            "volatile": "volatile: no sync reaches the disk at all",
            "fsync=volatile": "fsync=volatile: no sync reaches the disk at all",
        },
    ),
    "nfs": _NFS,
    "nfs4": _NFS,
    "cifs": _SMB,
    "smb3": _SMB,
    "lustre": Kind(
        f"POSIX semantics held by a distributed lock manager: {_SHARED}. rename is atomic on the metadata server; without fsync a "
        "power loss of a client loses what it still held in its cache",
        "https://doc.lustre.org/lustre_manual.xhtml, Understanding Lustre",
        {"noflock": "noflock: flock fails", "localflock": "localflock: flock is known to this node only"},
    ),
    "gpfs": Kind(
        f"POSIX semantics held by tokens: {_SHARED}, save for access times. fsync writes to disk",
        "https://www.ibm.com/docs/en/storage-scale, GPFS architecture",
    ),
    "ceph": Kind(
        f"{_SHARED}, but not through mappings; a write that crosses an object's boundary is not atomic. st_blocks is made from the "
        "size, so that the allocated size isn't told",
        "https://docs.ceph.com/en/latest/cephfs/posix/",
    ),
    "beegfs": Kind(
        "clients cache data for a short time only in the default mode; whether fsync reaches the disks of the servers is up to "
        "tuneRemoteFSync in the client's configuration",
        "https://doc.beegfs.io/latest/advanced_topics/client_tuning.html",
    ),
    "virtiofs": Kind(
        "the host's file system decides, with the cache mode that its daemon was given", f"{_KERNEL}/virtiofs.html"
    ),
    "9p": Kind(
        "the server decides; with cache=loose what others change is not seen",
        f"{_KERNEL}/9p.html",
        {
            "cache=loose": "cache=loose: what others change may not be seen",
            "cache=fscache": "cache=fscache: what others change may not be seen",
        },
    ),
    "fuse": Kind(
        "a program answers every operation: its documentation says what rename and fsync do, and FUSE itself guarantees nothing of it",
        f"{_KERNEL}/fuse.html",
        {"writeback_cache": "writeback_cache: writes reach the program later"},
    ),
    "fuse.gcsfuse": Kind(
        "a file becomes an object when it is closed or synced, and its last writer wins; renaming a file is atomic from version 3.1 on "
        "or in buckets with a hierarchical namespace, renaming a directory only in these",
        "https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/docs/semantics.md",
    ),
    "fuse.mountpoint-s3": Kind(
        "a file is written once, from its beginning, and is there once it was closed; in general purpose buckets rename fails",
        "https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md",
    ),
    "fuse.s3fs": Kind(
        "a file is uploaded when it is synced or closed; no rename is atomic, and machines are not coordinated",
        "https://github.com/s3fs-fuse/s3fs-fuse#limitations",
    ),
    "fuse.sshfs": Kind(
        "the server decides; rename replaces a name only where the server offers posix-rename, and fsync where it offers that",
        "sshfs(1)",
    ),
}


def documented(kind: str, mount_options: str) -> tuple[str, str]:
    """What the documentation says of this kind under these options, and its source; the source is empty for an unknown kind.

    `kind` is the type that the kernel names, with its subtype, as `fuse.sshfs`; of an unknown subtype FUSE itself is told.
    """
    found = KINDS.get(kind)
    if found is None and kind.partition(".")[0] in ("fuse", "fuseblk"):
        found = KINDS["fuse"]
    if found is None:
        return UNKNOWN, ""
    options = mount_options.split(",")
    weakened = [
        text
        for option, text in found.weakened.items()
        if option in options or any(entry.startswith(f"{option}=") for entry in options)
    ]
    return ". Here it is mounted with ".join([found.documented, *weakened]), found.source


MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """One line of mountinfo. `root` is the directory of the file system that is mounted; not `/` for a bind mount or a subvolume."""

    number: int
    parent: int
    root: str
    point: str
    options: tuple[str, ...]
    kind: str
    source: str

    def holds(self, path: str) -> bool:
        """Whether an absolute path lies at the mount point or below it."""
        return self.point == "/" or path == self.point or path.startswith(f"{self.point}/")


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo file (proc_pid_mountinfo(5)), in its order, which is that of mounting; other lines are passed over."""
    return tuple(mount for line in text.splitlines() if (mount := _mount(line)) is not None)


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without symbolic links lies on, found as the kernel does; None where none holds it.

    One walks down the path and steps into each mount that is met. So a mount on top hides what was mounted below it before.
    """
    every = [mount for mount in mounts if mount.holds(path)]
    numbers = {mount.number for mount in every}
    # The last of equals is on top.
    roots = [mount for mount in every if mount.parent not in numbers or mount.parent == mount.number]
    current = min(reversed(roots), key=lambda mount: len(mount.point), default=None)
    while current is not None:
        children = [mount for mount in every if mount.parent == current.number and mount.number != current.number]
        inner = min(reversed(children), key=lambda mount: len(mount.point), default=None)
        if inner is None:
            return current
        current = inner
    return None


def describe(tier: str, path: str | Path, mounts: Iterable[Mount]) -> FileSystem:
    """The file system of a tier's directory, which need not exist yet; symbolic links are followed."""
    real = os.path.realpath(path)
    found = mount_of(real, mounts)
    if found is None:
        text, source = documented("", "")
        return FileSystem(tier=tier, kind="unknown", mount_options="", device="", documented=text, source=source)
    options = ",".join(found.options)
    text, source = documented(found.kind, options)
    return FileSystem(
        tier=tier,
        kind=found.kind,
        mount_options=options,
        device=found.source,
        mount_point=found.point,
        root=found.root,
        documented=text,
        source=source,
    )


def file_systems(tiers: Iterable[tuple[str, str | Path]]) -> tuple[FileSystem, ...]:
    """The file systems of several tiers, each given with its directory, by this process's own mounts."""
    try:
        mounts = parse(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        mounts = ()  # A sandbox may hide /proc: then every kind is unknown, and said to be so.
    return tuple(describe(tier, path, mounts) for tier, path in tiers)


def _mount(line: str) -> Mount | None:
    """`36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/sda1 rw`; a source may be empty."""
    before, dash, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or len(right) < 3 or not (left[0].isdigit() and left[1].isdigit()):
        return None
    own, shared = left[5].split(","), right[2].split(",")
    return Mount(
        number=int(left[0]),
        parent=int(left[1]),
        root=_plain(left[3]),
        point=_plain(left[4]),
        options=tuple(dict.fromkeys(_plain(option) for option in (*own, *_beside(own, shared)))),
        kind=right[0],
        source=_plain(right[1]),
    )


def _beside(own: list[str], shared: list[str]) -> list[str]:
    """The file system's options beside the mount's: a mount that is read-only of one that is not stays read-only."""
    return [option for option in shared if not (option == "rw" and "ro" in own)]


def _plain(text: str) -> str:
    """Space, tab, newline, backslash and `#` are written as octal numbers."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
