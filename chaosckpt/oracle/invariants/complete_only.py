"""complete-only: what is resumed from is one whole checkpoint, with no torn or mixed part."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts import command_storage as storage
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.identity import Deviation, Identity
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged, lacking

NAME = "complete-only"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """By what was loaded: it equals, digest by digest, one captured generation."""
    judged = [(recovery, identity) for recovery in recoveries(view) for identity in recovery.identities]
    if not judged:
        return NotJudged("no rank loaded a state that could be compared with the saves")
    found = []
    for recovery, identity in judged:
        mixed = next((deviation for deviation in identity.deviations if deviation.mixed), None)
        if not identity.captures:
            found.append(_never_captured(view, recovery, identity, identity.mixture, identity.slug))
        elif mixed is not None:
            found.append(_never_captured(view, recovery, identity, _parts(identity, mixed), _slug(mixed)))
    return found


def _slug(deviation: Deviation) -> str:
    return "mixed-generations" if deviation.origin else "torn-bytes"


def _parts(identity: Identity, deviation: Deviation) -> str:
    whose = f"of {deviation.origin}" if deviation.origin else "of no save"
    part = f"the {deviation.component} of rank {deviation.rank}" if deviation.rank is not None else deviation.component
    return f"the parameters are of {identity.captures[0]}, but parts of {part} are {whose}: {deviation.detail}"


def _never_captured(view: TargetView, recovery: Recovery, identity: Identity, seen: str, slug: str) -> Violation:
    rank = identity.holder.ranks[0]
    answer = recovery.answer(rank)
    step = answer.event.chosen
    return view.violation(
        NAME,
        f"{view.after_restart(recovery.attempt.number)}, {identity.holder.name} loaded a state, reported as step {step}, that no save "
        f"had: {seen}. The state was stamped {_stamps(identity)}.",
        attempt=recovery.attempt.number,
        rank=rank if len(identity.holder.ranks) == 1 else None,
        step=step,
        error_type=slug,
        evidence=[recovery.answer(number).index for number in identity.holder.ranks],
        expected="a state whose parts all come from one save",
        seen=seen,
        shown=answer.index,
    )


def _stamps(identity: Identity) -> str:
    """Where each rank's own part says that it was captured."""
    stamps = {rank: digest.stamp for rank, digest in sorted(identity.holder.digests.items())}
    return ", ".join(
        f"on rank {rank} with attempt {attempt}, step {step}, rank {saver} of {world}"
        for rank, (attempt, step, saver, world) in stamps.items()
    )


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """By what lay on storage: no attempt resumes from a checkpoint whose files a fault left incomplete."""
    missing = lacking(view, "checkpoints", "resumes")
    if missing is not None:
        return missing
    judged = [attempt for attempt in view.recoveries if attempt.chosen is not None and attempt.read_what_it_chose]
    if not judged:
        return NotJudged(
            "no attempt without a fault in its recovery reported that it resumed and read a file of that checkpoint"
        )
    return [
        _resumed_torn(view, attempt)
        for attempt in judged
        if attempt.chosen in storage.before(view, attempt).torn and not _did_no_harm(view, attempt)
    ]


def _resumed_torn(view: CommandView, attempt: CommandAttempt) -> Violation:
    assert attempt.before is not None
    assert attempt.chosen is not None
    wrong = storage.before(view, attempt).wrong(attempt.chosen)
    ended = " The command failed to load it." if attempt.failed else ""
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, the command resumed from step {attempt.chosen}, whose checkpoint was not complete: "
        f"{wrong} was missing or differed from that of a golden run.{ended}",
        attempt=attempt.number,
        step=attempt.chosen,
        error_type="incomplete-checkpoint",
        evidence=(attempt.before.index, attempt.resumed[-1].index),
        expected="a complete checkpoint",
        seen=f"step {attempt.chosen}, without {wrong}",
    )


def _did_no_harm(view: CommandView, attempt: CommandAttempt) -> bool:
    """Whether the job, which went on from this checkpoint to its end, has exactly the result of the uninterrupted run.

    Then what is missing of the checkpoint, such as a file for people, is nothing that its state needs.
    """
    if view.command.result_command is not None and view.command.tolerance > 0:
        return False
    compared = [at.event.equal for other in view.attempts for at in other.all(j.ResultCompared)]
    later = [other for other in view.attempts if other.number > attempt.number]
    went_on = all(other.chosen is not None and other.chosen >= (attempt.chosen or 0) for other in later)
    return compared[-1:] == [True] and went_on


complete_only = Invariant(
    name=NAME,
    holds="the loaded state equals the state of one save, digest by digest: no torn parts, no parts of different saves",
    of_target=_of_target,
    of_command=_of_command,
)
