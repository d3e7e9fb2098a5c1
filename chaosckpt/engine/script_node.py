"""A node that runs an unmodified command instead of ranks with a target."""

from __future__ import annotations

import hashlib
import os
import re
import selectors
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.engine import storage
from chaosckpt.engine.armed import ArmedFaults
from chaosckpt.engine.channel import Channel, pair
from chaosckpt.engine.messages import AttemptOrder, ScriptOrder
from chaosckpt.engine.node import Node
from chaosckpt.engine.rank_process import Cause, decode_path
from chaosckpt.engine.script_process import ScriptProcess
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import decode_faults
from chaosckpt.plugins import fault_kinds
from chaosckpt.probe import VARIABLE


class ScriptNode(Node):
    """One process tree an attempt, however many ranks there are in it."""

    process: ScriptProcess | None = None

    def do_start(self, arguments: Any) -> None:
        """Launch the command."""
        self._end_attempt()
        script = self.settings.script
        assert script is not None
        order = msgspec.convert(arguments, AttemptOrder)
        self.armed = ArmedFaults(decode_faults(order.faults, fault_kinds().values()), order.step_rank)
        told = Path(script.environment[VARIABLE])
        told.unlink(missing_ok=True)
        ours, theirs = pair()
        log = Path(self.settings.directory) / f"attempt-{order.attempt}.log"
        with open(log, "wb") as stream, theirs:
            pid = self.launcher.launch(theirs.fileno(), stream.fileno())
        channel = Channel(ours)
        place = msgspec.structs.replace(order.places[0], tiers={**order.places[0].tiers, **script.tracked})
        self.process = ScriptProcess(
            place, pid, channel, log, self.armed, order.record, self.push, self.order, True,
            settings=script, ranks=order.world_size, numbers=order.save_numbers,
        )  # fmt: skip
        self.ranks[0] = self.by_pid[pid] = self.process
        channel.send(
            ScriptOrder(
                argv=order.argv,
                environment=script.environment,
                directory=script.directory,
                network=not script.network,
                report_modules=order.report_modules,
            )
        )
        self.selector.register(channel, selectors.EVENT_READ, self._gate_opener(self.process))
        if self.launcher.channel is not None:
            self._serve_fork_server()

    def process_of(self, rank: int) -> ScriptProcess | None:
        """Every rank lives in the command's tree."""
        return self.process

    def do_kill(self, arguments: Any) -> bool:
        """SIGKILL some ranks, or the whole tree (None): all of its ranks are the tree, with what watches over them."""
        ranks, by = msgspec.convert(arguments, tuple[list[int] | None, Cause])
        everyone = self.process is not None and set(ranks or ()) >= set(range(self.process.ranks))
        return super().do_kill((None if everyone else ranks, by))

    def do_decode(self, arguments: Any) -> None:
        """From the next attempt on, what these expressions match in a path is read as `*`."""
        self.nonces = [re.compile(pattern) for pattern in arguments]

    def do_terminate(self, arguments: Any) -> None:
        """SIGTERM to the command."""
        if self.process is not None:
            self.process.terminate()

    def do_counts(self, arguments: Any) -> dict[int, int]:
        """Operations performed by each rank of the tree."""
        process = self.process
        return {} if process is None else {rank: process.counts[rank] for rank in range(process.ranks)}

    def do_latest(self, arguments: Any) -> dict[int, list[Address]]:
        """The addresses of the last few operations, by rank."""
        found: dict[int, list[Address]] = {}
        for address in self.process.latest if self.process is not None else ():
            found.setdefault(address.rank, []).append(address)
        return found

    def do_output(self, arguments: Any) -> list[Any]:
        """What the command printed in this attempt, what it was refused, what it had imported, what it told by the probe, and
        the steps of which it read files."""
        if self.process is None or self.settings.script is None:
            return ["", [], [], [], []]
        told = Path(self.settings.script.environment[VARIABLE])
        lines = told.read_text(errors="replace").splitlines() if told.exists() else []
        process = self.process
        return [process.output(), process.guard.refused, list(process.modules), lines, sorted(process.read)]

    def do_manifest(self, arguments: Any) -> list[tuple[str, int, str]]:
        """(`tier:path` with nonces decoded, bytes, digest of the content) of every file below a tier's directory, sorted."""
        tier, directory = arguments
        found = [(decode_path(shown, self.nonces), *_content(path)) for shown, path in storage.files(tier, directory)]
        return sorted(found)


def _content(path: str) -> tuple[int, str]:
    """(bytes, digest); a symbolic link's content is where it leads."""
    if os.path.islink(path):
        target = os.readlink(path).encode(errors="surrogateescape")
        return len(target), "link:" + hashlib.blake2b(target, digest_size=16).hexdigest()
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size, hashlib.file_digest(
            file, lambda: hashlib.blake2b(digest_size=16)
        ).hexdigest()
