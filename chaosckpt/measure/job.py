"""The measured job: its nodes without any gate, on storage of its own, and what its ranks tell of each life."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from chaosckpt.engine.golden.census import failure
from chaosckpt.engine.rank.instruments import seccomp
from chaosckpt.engine.runner.arena import Arena, node_settings
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.engine.wire import storage
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.engine.wire.reports import Measured
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.phrasing import plural
from chaosckpt.model.scenario import Scenario, WorkloadSettings
from chaosckpt.model.topology import Topology
from chaosckpt.training.metered import Metered

PATIENCE_SECONDS = 60.0
"""What a job without faults is thought to take, for deadlines only: a save of any size may keep a disk busy for long."""


class MeasuredJob:
    """One job on an arena. `cold` carries the same tiers by nodes that launch their ranks by exec, for restarts."""

    def __init__(self, scenario: Scenario, arena: Arena, cold: Arena | None) -> None:
        self.scenario = scenario
        self.arena = arena
        self._cold = cold
        self._attempt = 0

    @property
    def guarantees(self) -> frozenset[str]:
        """What the target claims, or the scenario holds it to."""
        return frozenset(TargetSubject(self.scenario).guarantees(self.arena))

    def directories(self, topology: Topology) -> list[tuple[str, str]]:
        """(tier, directory) of every tier of this topology, each directory once."""
        numbers = range(len(topology.ranks))
        return sorted({item for number in numbers for item in self.arena.tiers(number).items()})

    def begin(self, workload: WorkloadSettings) -> None:
        """Another job on the same nodes: storage is emptied, and ranks train this workload from now on."""
        self.scenario = msgspec.structs.replace(self.scenario, workload=workload)
        self.arena.reset()
        self._attempt = 0
        for arena in filter(None, (self.arena, self._cold)):
            for node in arena.distinct():
                node.use(node_settings(self.scenario, self.arena.directory, gate=False))

    def run(self, topology: Topology, measure: MeasuringProgram, what: str) -> tuple[Metered, ...]:
        """One attempt; what each rank told at its end, by rank. Raises UsageError, with what the job said, where it fails."""
        told: dict[int, Metered] = {}

        def listen(metered: Metered) -> None:
            told[metered.rank] = metered

        attempt = self.attempt(topology, measure, listen)
        outcome = attempt.run()
        if outcome != "finished" or len(told) < topology.world_size:
            # Said here: once the job is closed, its storage has gone, and the space is free again.
            raise UsageError(f"{failure(what, outcome, attempt.events)}{storage.shortage(self.arena.directory)}")
        return tuple(told[rank] for rank in sorted(told))

    def attempt(
        self, topology: Topology, measure: MeasuringProgram, each: Callable[[Metered], None]
    ) -> MeasuredAttempt:
        """An attempt that is yet to be run; each thing that a rank tells is passed on."""
        resumes = self._attempt > 0
        order = AttemptOrder(
            attempt=self._attempt,
            intent="resume" if resumes else "start",
            world_size=topology.world_size,
            places=(),
            collective_timeout_seconds=self.deadlines.collective_seconds,
            program=measure,
        )
        self._attempt += 1
        arena = self._cold if measure.kind == "restart" and self._cold is not None else self.arena
        return MeasuredAttempt(arena, order, topology, each, self.deadlines)

    @property
    def deadlines(self) -> Deadlines:
        """Patient ones."""
        return Deadlines(golden_seconds=PATIENCE_SECONDS)

    def probe_directories(self, topology: Topology) -> dict[str, str]:
        """A directory beside each tier, on the same storage, in which operations are timed."""
        found = {tier: Path(directory).with_name("probe") for tier, directory in self.directories(topology)}
        for directory in found.values():
            storage.require_mark(directory)
            directory.mkdir(exist_ok=True)
        return {tier: str(directory) for tier, directory in found.items()}

    def drop_local(self, topology: Topology) -> None:
        """Node-local storage of every node is gone, as in a fresh allocation."""
        for tier, directory in self.directories(topology):
            if tier == "local":
                self.arena.nodes[0].drop(directory)


class MeasuredAttempt(Listener):
    """An attempt of measuring ranks, yet to be run. What happens is kept in `events`, for the sentence in case it fails."""

    def __init__(
        self,
        arena: Arena,
        order: AttemptOrder,
        topology: Topology,
        each: Callable[[Metered], None],
        deadlines: Deadlines,
    ) -> None:
        self.events: list[j.AnyEvent] = []
        self._run = AttemptRun(arena, order, topology, (), self.events.append, deadlines, listener=self)
        self._each = each
        self._allowed = seccomp().filters

    def run(self) -> j.AttemptOutcome:
        """Run it to its end. Raises HarnessError for trouble of the harness, and for ranks under a filter of their own."""
        return self._run.run()

    def heard(self, message: Heard) -> None:
        if not isinstance(message, Measured):
            return
        found = message.metered.seccomp
        if found.filters > self._allowed:
            raise HarnessError(
                f"rank {message.metered.rank} runs under {plural(found.filters - self._allowed, 'system call filter')} of its own "
                "(Seccomp_filters in /proc/self/status), whose time the figures would include; the measurement was stopped"
            )
        self._each(message.metered)


@contextmanager
def open_job(scenario: Scenario, *, modules: Sequence[str] = (), restarts: bool = True) -> Iterator[MeasuredJob]:
    """A job on this machine, never under the gate; its processes and storage are gone at the end.

    With `restarts` it has a second node, whose ranks are started by exec.
    """
    with ExitStack() as stack:
        directory = storage.make_below(scenario.storage.shared)
        stack.callback(storage.remove, directory)
        local = directory
        if (scenario.storage.shared, scenario.storage.local) != (None, None):
            # By default both lie in the temporary directory; else shared storage must not stand in for a node's own disk.
            local = storage.make_below(scenario.storage.local)
            stack.callback(storage.remove, local)
        # What ranks put into their temporary directory must neither load the storage that is measured nor lie too deep for a socket.
        temporary = local / "t"
        temporary.mkdir()
        warm = _node(scenario, directory / "logs", temporary, tuple(modules), stack)
        count = scenario.topology.nodes
        cold = None
        if restarts:
            fresh = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, launch="exec"))
            cold = Arena([_node(fresh, local / "f", local / "f", warm.modules, stack)] * count, directory, local)
        yield MeasuredJob(scenario, Arena([warm] * count, directory, local), cold)


def _node(scenario: Scenario, logs: Path, temporary: Path, modules: tuple[str, ...], stack: ExitStack) -> LocalNode:
    """A node process of this machine. It keeps the ranks' logs in a new directory; orphaned, it removes the storage around that."""
    logs.mkdir()
    settings = node_settings(scenario, logs, gate=False, modules=modules)
    node = LocalNode(msgspec.structs.replace(settings, temporary=str(temporary)))
    stack.callback(node.close)
    return node
