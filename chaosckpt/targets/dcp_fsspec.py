"""`dcp-fsspec`: PyTorch's distributed checkpoint in an object store, complete when the object that commits it is there.

An object store has no rename, and no directory that could become complete in one step. What it has: one PUT makes one object appear
whole, or not at all, and whoever lists afterwards sees it. So every save writes under a prefix of its own, which nobody wrote to
before, and is committed by one small object that names that prefix with the size of every object in it. Nothing is ever overwritten:
a writer that comes late, from a job that was thought dead, can't replace what another one has committed.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

from chaosckpt.errors import UsageError
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import CheckpointError, Chosen, Done, Intent, Nothing, Option, Pending, Target
from chaosckpt.targets.dcp import METADATA, dcp_errors, load_sharded
from chaosckpt.training.state import TrainState

PREFIX_FILE = "object-store-prefix"
_COMMIT = re.compile(r"step-(\d{6,})\.attempt-(\d+)-[0-9a-f]{8}\.commit")
_S3_OPTIONS: dict[str, Any] = {
    # What another process has written is there at once; a listing that was kept would hide it.
    "use_listings_cache": False,
    # A server that is gone is told in seconds, well before the job's collectives give up.
    "config_kwargs": {"connect_timeout": 3, "read_timeout": 10, "retries": {"max_attempts": 2}},
}


class Commit(msgspec.Struct, frozen=True):
    """The object that commits a save: the prefix that holds it, and the bytes of every object there."""

    step: int
    prefix: str
    objects: dict[str, int]


class DcpFsspec(Target):
    """dcp.save through fsspec to `url`, such as `s3://bucket/jobs`; recovery from the newest committed save.

    Every job has a prefix of its own below `url`, drawn at its first launch and kept in a file on shared storage. Needs the package of
    the store's protocol, for S3 `pip install chaosckpt[s3]`; credentials, and the endpoint where it isn't Amazon's, come from the
    environment (`AWS_ENDPOINT_URL`). The harness sees no operation of it: `chaosckpt drill` tests it, `fuzz` could strike at stage
    boundaries only. What it leaves in the store stays there. Option: `keep` the newest so many checkpoints (0 keeps all).
    """

    name = "dcp-fsspec"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset(
        {"process-crash", "node-loss", "local-storage-loss", "world-size-change"}
    )
    options: ClassVar[Mapping[str, Option]] = {"url": "", "keep": 0}

    _found: str = ""

    def save(self, state: TrainState, step: int) -> Pending:
        """Save under a new prefix, then commit; every rank returns after the commit is in the store."""
        root = self.root()
        name = self.broadcast(f"attempt-{self.context.attempt}-{uuid.uuid4().hex[:8]}")
        prefix = f"{root}/step-{step:06d}/{name}"
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        with dcp_errors(f"saving {prefix}"):
            state_dict_saver.save(snapshot, storage_writer=self.writer(prefix))
        self.stage("commit")
        self.on_rank_zero(f"committing {prefix}", lambda: self.commit(step, prefix, f"step-{step:06d}.{name}.commit"))
        self.stage("retire")
        self.on_rank_zero(f"clearing what {prefix} replaces", lambda: self.retire(step, name))
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest committed step: rank 0 looks, all ranks load what it found."""
        self.stage("discover")
        root = self.root()
        newest = self.on_rank_zero(f"listing {root}", lambda: max(self.committed(), default=None))
        if newest is None:
            return self.nothing(intent, f"{root}/step-*.commit")
        self.stage("load")
        self.load(state, newest)
        return Chosen(newest)

    def retained(self) -> Sequence[int]:
        """The steps that are committed."""
        root = self.root()
        return self.on_rank_zero(f"listing {root}", lambda: sorted(self.committed()))

    def load(self, state: TrainState, step: int) -> None:
        """dcp.load of one committed step, once every object of it is there in its full size."""
        root = self.root()
        commit = self.on_rank_zero(f"reading the commit of step {step} in {root}", lambda: self.checked(step))
        load_sharded(self, state, commit.prefix, FsspecReader(commit.prefix, **self.store_options()))

    def writer(self, prefix: str) -> FsspecWriter:
        """A writer for one save. Objects are durable once they are written; torch would else sync the machine's own disks."""
        return FsspecWriter(prefix, sync_files=False, **self.store_options())

    def commit(self, step: int, prefix: str, name: str) -> None:
        """Look at what was written, then put the one object that makes it a checkpoint."""
        objects = self.objects(prefix)
        if METADATA not in objects:
            raise CheckpointError(f"{prefix}/{METADATA} is not in the store after it was written")
        content = msgspec.json.encode(Commit(step, prefix, objects))
        self.store().pipe_file(f"{self.root()}/{name}", content)

    def checked(self, step: int) -> Commit:
        """The newest commit of a step. Raises CheckpointError where an object that it names is missing or has another size."""
        name = self.committed().get(step)
        if name is None:
            raise CheckpointError(
                f"there is no commit of step {step}: looked for {self.root()}/step-{step:06d}.*.commit"
            )
        commit = msgspec.json.decode(self.store().cat_file(f"{self.root()}/{name}"), type=Commit)
        there = self.objects(commit.prefix)
        for path, size in sorted(commit.objects.items()):
            if there.get(path) != size:
                raise CheckpointError(
                    f"{commit.prefix}/{path} has {there.get(path, 'no')} bytes in the store, but {size} were committed"
                )
        return commit

    def retire(self, step: int, name: str) -> None:
        """Remove older saves of this step, and all but the newest `keep` steps: commits first, then what they vouch for."""
        keep = int(self.option("keep"))
        known = sorted(self.committed())
        gone = known[:-keep] if keep else []
        for path in self.listed(self.root()):
            found = _COMMIT.fullmatch(path)
            if found and (int(found[1]) in gone or (int(found[1]) == step and name not in path)):
                self.store().rm_file(f"{self.root()}/{path}")
        for old in gone:
            self.remove(f"{self.root()}/step-{old:06d}")
        for other in self.listed(f"{self.root()}/step-{step:06d}"):
            if other != name:
                self.remove(f"{self.root()}/step-{step:06d}/{other}")

    def committed(self) -> dict[int, str]:
        """The name of the newest commit of every step."""
        matches = [found for name in self.listed(self.root()) if (found := _COMMIT.fullmatch(name))]
        matches.sort(key=lambda found: int(found[2]))
        return {int(found[1]): found[0] for found in matches}

    def objects(self, prefix: str) -> dict[str, int]:
        """The bytes of every object directly below a prefix, by its name."""
        found = self.store().ls(prefix, detail=True)
        return {os.path.basename(entry["name"]): int(entry["size"]) for entry in found if entry["type"] == "file"}

    def listed(self, prefix: str) -> list[str]:
        """The names directly below a prefix; none where nothing has it. Raises OSError where the store doesn't answer."""
        try:
            return sorted(os.path.basename(path.rstrip("/")) for path in self.store().ls(prefix, detail=False))
        except FileNotFoundError:
            self.store().ls(os.path.dirname(self.url()), detail=False)  # a bucket that is gone is not an empty one
            return []

    def remove(self, prefix: str) -> None:
        """Remove every object below a prefix."""
        self.store().rm(prefix, recursive=True)

    def store(self) -> Any:
        """The file system of the store: a new object each time is cheap, and knows nothing of the past."""
        from fsspec.core import url_to_fs

        return url_to_fs(self.url(), **self.store_options())[0]

    def store_options(self) -> dict[str, Any]:
        """What fsspec is told for this protocol."""
        return dict(_S3_OPTIONS) if self.url().startswith("s3://") else {}

    def url(self) -> str:
        """Where all jobs of this scenario keep their checkpoints. Raises UsageError where the scenario names no place."""
        url = str(self.option("url")).rstrip("/")
        if "://" not in url:
            raise UsageError(
                f"target.options.url = {url!r} names no object store; write a URL such as s3://bucket/jobs"
            )
        return url

    def root(self) -> str:
        """This job's own prefix. The first call is a collective one."""
        if not self._found:
            self._found = self.on_rank_zero(f"reading {self.shared / PREFIX_FILE}", self._own_prefix)
        return self._found

    def _own_prefix(self) -> str:
        path = self.shared / PREFIX_FILE
        if not path.exists():
            temporary = path.with_suffix(".tmp")
            temporary.write_text(f"job-{uuid.uuid4().hex}", encoding="utf-8")
            temporary.rename(path)
        return f"{self.url()}/{path.read_text(encoding='utf-8')}"
