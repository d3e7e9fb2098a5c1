"""What a drill's journals show: how a restore ended, which parts of the state came back, what was trained from there on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaosckpt import oracle
from chaosckpt.drill.certificate import Outcome, PartCheck, Trajectory
from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest, combine, fingerprint, part_fingerprints
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle.facts.failures import failure, message, names_its_subject, root
from chaosckpt.oracle.facts.view import TargetAttempt, TargetView
from chaosckpt.oracle.invariant import Invariant
from chaosckpt.oracle.phrasing import describe

_SAVING = frozenset({"durable-acknowledgement", "bounded-saves"})
_TRAINING = frozenset({"trajectory", "exactly-once-data", "progress"})


@dataclass(frozen=True)
class Findings:
    """One trial of a drill, judged. `attempt` is the one that had to restore; None where there was none."""

    journal: j.Journal
    verdict: Verdict
    view: TargetView
    attempt: TargetAttempt | None

    @property
    def violations(self) -> tuple[Violation, ...]:
        primary = self.verdict.primary
        return () if primary is None else (primary, *self.verdict.others)

    @property
    def of_saving(self) -> list[Violation]:
        """What is wrong with the run that saved, or with what it was told of its saves."""
        return [
            v
            for v in self.violations
            if v.invariant in _SAVING or self.attempt is None or v.attempt < self.attempt.number
        ]

    @property
    def of_restoring(self) -> list[Violation]:
        return [v for v in self.violations if v not in self.of_saving and v.invariant not in _TRAINING]

    @property
    def of_training(self) -> list[Violation]:
        return [v for v in self.violations if v not in self.of_saving and v.invariant in _TRAINING]

    @property
    def resumed_from(self) -> int | None:
        """The step with which every rank said that it went on; None where they didn't, or began at step 0."""
        if self.attempt is None or len(self.attempt.recovered) < self.attempt.world_size:
            return None
        steps = {at.event.chosen for at in self.attempt.recovered}
        return steps.pop() if len(steps) == 1 else None

    @property
    def refused(self) -> str:
        """How the restore failed clearly, in words: every rank ended with an error, and one names what it looked for. Else empty."""
        if self.attempt is None or self.attempt.recovered or self.attempt.hung_in_recovery:
            return ""
        tracks = [track for track in self.attempt.tracks if track.phase in ("raised", "exited")]
        codes = [track.exit.event.exit_code if track.exit is not None else None for track in tracks]
        named = any(names_its_subject(message(track)) for track in tracks)
        if len(tracks) < self.attempt.world_size or 0 in codes or not named:
            return ""
        first = root(tracks)
        return failure(first) if first is not None else ""

    @property
    def outcome(self) -> Outcome:
        """What became of the state in this trial."""
        if self.refused:
            return "failed clearly"
        if self.violations:
            return "failed"
        if self.verdict.outcome != "pass" or self.resumed_from is None:
            return "not tested"
        return "survived"


def judge(scenario: Scenario, journal: j.Journal, invariants: Sequence[Invariant]) -> Findings:
    """Judge one journal of a drill as the oracle judges any trial."""
    view = TargetView(scenario, journal)
    found = Findings(journal, oracle.check(scenario, journal, invariants), view, view.closing)
    if not scenario.drill.tolerance or not any(_of_losses(violation) for violation in found.violations):
        return found
    trained = trajectory(found, scenario.drill.tolerance)
    if trained is None or not trained.within:
        return found
    left = [violation for violation in found.violations if not _of_losses(violation)]
    verdict = Verdict(
        outcome="violation" if left else "pass",
        primary=left[0] if left else None,
        others=tuple(left[1:]),
        reason=found.verdict.reason,
        judged=found.verdict.judged,
    )
    return Findings(journal, verdict, view, view.closing)


def _of_losses(violation: Violation) -> bool:
    """Whether it is about numbers that a declared tolerance is for, and not about random streams, data or steps."""
    return violation.error_type in ("other-loss", "other-parameters", "other-optimizer")


def evidence(findings: Findings, *kinds: type[j.Event], attempt: int | None = None) -> tuple[str, ...]:
    """The journal's own lines of these kinds, in words, each with its number."""
    return tuple(
        f"#{at.index} {describe(at.event)}"
        for at in findings.view.events
        if isinstance(at.event, kinds) and (attempt is None or at.event.attempt == attempt)
    )


def parts(findings: Findings, known_step: int) -> tuple[PartCheck, ...]:
    """Every part of the state on every restoring rank, beside what was captured for the save of the known step."""
    captured = {
        event.rank: event.digest
        for event in findings.journal.events
        if isinstance(event, j.SaveStarted) and event.attempt == 0 and event.step == known_step
    }
    attempt = findings.attempt
    restored = {} if attempt is None else {at.event.rank: at.event.digest for at in attempt.recovered}
    if not captured or not restored:
        return ()
    if next(iter(captured.values())).world_size == next(iter(restored.values())).world_size:
        return tuple(check for rank in sorted(restored) for check in _of_rank(captured.get(rank), restored[rank]))
    return _of_worlds(captured, restored)


def _of_rank(captured: StateDigest | None, restored: StateDigest) -> list[PartCheck]:
    expected = {} if captured is None else _fingerprints(captured)
    return [
        PartCheck(
            rank=restored.rank, part=part, expected=expected.get(part, ""), seen=seen, equal=expected.get(part) == seen
        )
        for part, seen in _fingerprints(restored).items()
    ]


def _fingerprints(digest: StateDigest) -> dict[str, str]:
    return {
        "step": str(digest.step),
        "parameters": fingerprint(digest.params),
        "optimizer": fingerprint((digest.optimizer, digest.optimizer_scalars)),
        "scheduler": fingerprint(digest.scheduler),
        "random streams": fingerprint(digest.rng),
        "data position": fingerprint(digest.sampler),
    }


def _of_worlds(captured: dict[int, StateDigest], restored: dict[int, StateDigest]) -> tuple[PartCheck, ...]:
    """The parts that compare across numbers of ranks, then each new rank's own."""
    try:
        before, after = combine(list(captured.values())), combine(list(restored.values()))
    except ValueError:
        return ()
    expected, shown = part_fingerprints(before), part_fingerprints(after)
    position = expected.pop("sampler")
    found = [
        PartCheck(rank=None, part=part, expected=right, seen=shown[part], equal=right == shown[part])
        for part, right in expected.items()
    ]
    streams: set[str] = set()
    for rank, digest in sorted(restored.items()):
        place, rng = fingerprint(digest.sampler), fingerprint(digest.rng)
        note = "required: a stream of its own; with another number of ranks there is no saved stream to compare with"
        found += [
            PartCheck(rank=rank, part="data position", expected=position, seen=place, equal=place == position),
            PartCheck(rank=rank, part="random streams", expected="", seen=rng, equal=rng not in streams, note=note),
        ]
        streams.add(rng)
    return tuple(found)


def trajectory(findings: Findings, tolerance: float) -> Trajectory | None:
    """The losses trained after the restore, beside those of the golden job; None where no step of both is known."""
    attempt = findings.attempt
    if attempt is None:
        return None
    golden = {step.step: step.losses for at in attempt.all(j.Reference) for step in at.event.steps}
    told: dict[int, dict[int, str]] = {}
    for at in attempt.events:
        if isinstance(at.event, j.SaveStarted | j.Finished):
            for trace in at.event.trained:
                told.setdefault(trace.step, {})[at.event.rank] = trace.loss
    steps = tuple(step for step in sorted(told) if step in golden and len(told[step]) == len(golden[step]))
    if not steps:
        return None
    return Trajectory(
        steps=steps,
        losses=tuple(sum(float.fromhex(loss) for _, loss in sorted(told[step].items())) for step in steps),
        golden=tuple(sum(map(float.fromhex, golden[step])) for step in steps),
        bitwise=all([loss for _, loss in sorted(told[step].items())] == list(golden[step]) for step in steps)
        and not [v for v in findings.of_training if v.invariant == "trajectory"],
        tolerance=tolerance,
    )
