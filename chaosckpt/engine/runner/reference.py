"""Reference jobs: what a lineage of attempts should have trained, from the harness's own job without any checkpointer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import ReferenceProgram
from chaosckpt.engine.wire.reports import Referred
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest, combine, fingerprint, part_fingerprints
from chaosckpt.model.topology import Topology


class Stretch(msgspec.Struct, frozen=True):
    """One segment of a lineage. `kept` has, for each rank, whether its random streams went on from the segment before."""

    segment: j.Segment
    kept: tuple[bool, ...] = ()


Lineage = tuple[Stretch, ...]


class _Trained(msgspec.Struct, frozen=True):
    """What one reference job did, and the directory of its exports."""

    directory: str
    start_rng: tuple[str, ...]
    steps: tuple[j.ReferenceStep, ...]


class ReferenceJobs:
    """Reference jobs by arena and lineage, each run once however many trials need it."""

    def __init__(self) -> None:
        self._trained: dict[tuple[str, Lineage], _Trained] = {}

    def trained(self, lineage: Lineage, arena: Arena, deadlines: Deadlines) -> _Trained:
        """What this lineage trains. Raises HarnessError when the job doesn't run."""
        key = (str(arena.directory), lineage)
        if key not in self._trained:
            self._trained[key] = self._run(lineage, arena, deadlines)
        return self._trained[key]

    def _run(self, lineage: Lineage, arena: Arena, deadlines: Deadlines) -> _Trained:
        *before, last = lineage
        source = ""
        if before:
            parent = self.trained(tuple(before), arena, deadlines)
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
        reports = _Reports()
        outcome = AttemptRun(arena, order, topology, (), reports.record, deadlines, listener=reports).run()
        if outcome != "finished":
            raise HarnessError(
                f"the reference job with {topology} ranks, which runs without the target, {outcome}{reports.said}"
            )
        return reports.trained(directory)


class References:
    """What the attempts of one trial should have trained, and their lineages so far."""

    def __init__(self, jobs: ReferenceJobs) -> None:
        self._jobs = jobs
        self._lineages: dict[int, Lineage] = {}

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
        job = self._jobs.trained(lineage, arena, deadlines)
        return j.Reference(
            attempt=attempt,
            lineage=tuple(stretch.segment for stretch in lineage),
            resumed_from=resumed_from,
            start_rng=job.start_rng if resumed_from == lineage[-1].segment.since else _rng_at(job, resumed_from),
            steps=tuple(step for step in job.steps if resumed_from < step.step <= last),
        )

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


class _Reports(Listener):
    """What the ranks of a reference job report; nothing of it is journalled."""

    def __init__(self) -> None:
        self.said = ""
        self._digests: dict[int, dict[int, StateDigest]] = {}
        self._traces: dict[int, dict[int, j.StepTrace]] = {}

    def record(self, event: j.AnyEvent) -> None:
        """Keep only the first error, for the sentence in case it fails."""
        if isinstance(event, j.Raised) and not self.said:
            self.said = f" on rank {event.rank} with {event.error_type}: {event.message}"

    def heard(self, message: Heard) -> None:
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


def _rng_at(job: _Trained, step: int) -> tuple[str, ...]:
    return next((at.rng for at in job.steps if at.step == step), ())


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
