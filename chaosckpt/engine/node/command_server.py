"""A node that runs an unmodified command instead of ranks with a target."""

from __future__ import annotations

import selectors
from collections.abc import Sequence
from pathlib import Path

import msgspec

from chaosckpt.engine.node.armed import ArmedFaults
from chaosckpt.engine.node.command_process import ScriptProcess
from chaosckpt.engine.node.server import Node
from chaosckpt.engine.wire.channel import Channel, pair
from chaosckpt.engine.wire.orders import AttemptOrder, ScriptOrder
from chaosckpt.engine.wire.reports import Cause
from chaosckpt.engine.wire.requests import CommandOutput
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import decode_faults
from chaosckpt.plugins import fault_kinds
from chaosckpt.probe import VARIABLE


class ScriptNode(Node):
    """One process tree an attempt, however many ranks there are in it."""

    process: ScriptProcess | None = None

    def start(self, order: AttemptOrder) -> None:
        """Launch the command."""
        self._end_attempt()
        script = self.settings.script
        assert script is not None
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

    def kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        """SIGKILL some ranks, or the whole tree (None): all of its ranks are the tree, with what watches over them."""
        everyone = self.process is not None and set(ranks or ()) >= set(range(self.process.ranks))
        return super().kill(None if everyone else ranks, by)

    def terminate(self, ranks: Sequence[int]) -> None:
        """SIGTERM to the command."""
        if self.process is not None:
            self.process.terminate()

    def counts(self) -> dict[int, int]:
        """Operations performed by each rank of the tree."""
        process = self.process
        return {} if process is None else {rank: process.counts[rank] for rank in range(process.ranks)}

    def latest(self) -> dict[int, list[Address]]:
        """The addresses of the last few operations, by rank."""
        found: dict[int, list[Address]] = {}
        for address in self.process.latest if self.process is not None else ():
            found.setdefault(address.rank, []).append(address)
        return found

    def output(self) -> CommandOutput:
        """What the command of this attempt left to be read."""
        if self.process is None or self.settings.script is None:
            return CommandOutput()
        told = Path(self.settings.script.environment[VARIABLE])
        process = self.process
        return CommandOutput(
            printed=process.output(),
            refused=tuple(process.guard.refused),
            modules=process.modules,
            told=tuple(told.read_text(errors="replace").splitlines()) if told.exists() else (),
            read=tuple(sorted(process.read)),
        )
