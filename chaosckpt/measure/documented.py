"""What the documentation of each kind of file system guarantees about rename, fsync and reading after a close, and where it says so.

It is what is documented, not what was tested here; mount options that weaken it are told too.
"""

from __future__ import annotations

import msgspec

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
