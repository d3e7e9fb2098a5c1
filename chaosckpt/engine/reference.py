"""Reference jobs: what a lineage of attempts should have trained, from the harness's own job without any checkpointer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import ReferenceProgram
from chaosckpt.engine.wire.reports import Measured, Referred, Retained
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest, combine, fingerprint, part_fingerprints
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology


class Stretch(msgspec.Struct, frozen=True):
    """One segment of a lineage. `kept` has, for each rank, whether its random streams went on from the segment before."""

    segment: j.Segment
    kept: tuple[bool, ...] = ()


Lineage = tuple[Stretch, ...]


class _Trained(msgspec.Struct, frozen=True):
    """What one reference life did, and the directory of its exports."""

    directory: str
    start_rng: tuple[str, ...]
    steps: tuple[j.ReferenceStep, ...]


class References:
    """Reference lives by lineage, each lived once on an arena; and the lineages of the attempts of the trial that is running."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._lives: dict[tuple[str, Lineage], _Trained] = {}
        self._lineages: dict[int, Lineage] = {}

    def begin(self) -> None:
        """A new trial starts."""
        self._lineages.clear()

    def after(
        self, events: Sequence[j.AnyEvent], attempt: int, topology: Topology, arena: Arena, deadlines: Deadlines
    ) -> j.Reference | None:
        """The reference of an attempt that ended; None where its state could not be told from what was saved before.

        Raises HarnessError when the reference job doesn't run.
        """
        found = self._lineage(events, attempt, topology)
        if found is None:
            return None
        lineage, resumed_from = found
        self._lineages[attempt] = lineage
        last = max((event.step for event in _told(events, attempt)), default=None)
        if last is None or last == resumed_from:
            return None
        life = self._life(lineage, arena, deadlines)
        return j.Reference(
            attempt=attempt,
            lineage=tuple(stretch.segment for stretch in lineage),
            resumed_from=resumed_from,
            start_rng=life.start_rng if resumed_from == lineage[-1].segment.since else self._rng_at(life, resumed_from),
            steps=tuple(step for step in life.steps if resumed_from < step.step <= last),
        )

    def _rng_at(self, life: _Trained, step: int) -> tuple[str, ...]:
        return next((at.rng for at in life.steps if at.step == step), ())

    def _lineage(self, events: Sequence[j.AnyEvent], attempt: int, topology: Topology) -> tuple[Lineage, int] | None:
        answers = [event for event in events if isinstance(event, j.Recovered) and event.attempt == attempt]
        chosen = {event.chosen for event in answers}
        if len(answers) != topology.world_size or len(chosen) != 1:
            return None
        step = chosen.pop()
        if step is None:
            return (Stretch(j.Segment(topology.ranks, 0)),), 0
        held = {event.rank: event.digest for event in answers}
        source = _captured(events, step, held)
        if source is None or source[0] not in self._lineages:
            return None
        parent, captured = self._lineages[source[0]], source[1]
        kept = tuple(rank in captured and held[rank].rng == captured[rank].rng for rank in range(topology.world_size))
        if len(captured) == topology.world_size:
            return parent, step
        return (*parent, Stretch(j.Segment(topology.ranks, step), kept)), step

    def _life(self, lineage: Lineage, arena: Arena, deadlines: Deadlines) -> _Trained:
        key = (str(arena.directory), lineage)
        if key not in self._lives:
            self._lives[key] = self._live(lineage, arena, deadlines)
        return self._lives[key]

    def _live(self, lineage: Lineage, arena: Arena, deadlines: Deadlines) -> _Trained:
        *before, last = lineage
        source = ""
        if before:
            parent = self._life(tuple(before), arena, deadlines)
            source = f"{parent.directory}/{last.segment.since}"
        name = hashlib.blake2b(msgspec.json.encode(lineage), digest_size=8).hexdigest()
        directory = str(arena.directory / "references" / name)
        topology = Topology(last.segment.ranks)
        order = AttemptOrder(
            attempt=0,
            intent="start",
            world_size=topology.world_size,
            places=(),
            collective_timeout_seconds=deadlines.collective_seconds,
            program=ReferenceProgram(source=source, kept=last.kept, directory=directory),
        )
        run = _ReferenceRun(arena, order, topology, deadlines)
        outcome = run.run()
        if outcome != "finished":
            raise HarnessError(
                f"the reference job with {topology} ranks {outcome}{run.said}; it runs without the target"
            )
        return run.trained(directory)


class _ReferenceRun(AttemptRun):
    """A reference life on its nodes; nothing of it is journalled."""

    def __init__(self, arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines) -> None:
        super().__init__(arena, order, topology, (), self._listen, deadlines)
        self.said = ""
        self._digests: dict[int, dict[int, StateDigest]] = {}
        self._traces: dict[int, dict[int, j.StepTrace]] = {}

    def _listen(self, event: j.AnyEvent) -> None:
        if isinstance(event, j.Raised) and not self.said:
            self.said = f" on rank {event.rank} with {event.error_type}: {event.message}"

    def noted(self, message: Retained | Referred | Measured) -> None:
        if not isinstance(message, Referred):
            return
        if message.digest is not None:
            self._digests.setdefault(message.step, {})[message.rank] = message.digest
        if message.trained is not None:
            self._traces.setdefault(message.step, {})[message.rank] = message.trained

    def trained(self, directory: str) -> _Trained:
        first = min(self._digests)
        return _Trained(directory, _rng(self._digests[first]), tuple(self._step(step) for step in sorted(self._traces)))

    def _step(self, step: int) -> j.ReferenceStep:
        traces = [self._traces[step][rank] for rank in sorted(self._traces[step])]
        samples = tuple(sorted(sample for trace in traces for sample in trace.samples))
        losses = tuple(trace.loss for trace in traces)
        digests = self._digests.get(step)
        if digests is None:
            return j.ReferenceStep(step, samples, losses)
        return j.ReferenceStep(step, samples, losses, part_fingerprints(combine(list(digests.values()))), _rng(digests))


def _rng(digests: dict[int, StateDigest]) -> tuple[str, ...]:
    return tuple(fingerprint(digests[rank].rng) for rank in sorted(digests))


def _told(events: Sequence[j.AnyEvent], attempt: int) -> list[j.SaveStarted | j.Finished]:
    return [event for event in events if isinstance(event, (j.SaveStarted, j.Finished)) and event.attempt == attempt]


def _captured(
    events: Sequence[j.AnyEvent], step: int, held: dict[int, StateDigest]
) -> tuple[int, dict[int, StateDigest]] | None:
    """The newest attempt whose capture of `step` is the state that the ranks hold now, with that capture."""
    captures: dict[int, dict[int, StateDigest]] = {}
    for event in events:
        if isinstance(event, j.SaveStarted) and event.step == step:
            captures.setdefault(event.attempt, {})[event.rank] = event.digest
    world = combine(list(held.values()))
    for attempt, digests in sorted(captures.items(), reverse=True):
        complete = len(digests) == next(iter(digests.values())).world_size
        if complete and combine(list(digests.values())).shared_parts() == world.shared_parts():
            return attempt, digests
    return None
