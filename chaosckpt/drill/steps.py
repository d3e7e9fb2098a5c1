"""The steps of a drill, each as what was seen says it: an outcome, a sentence, and the evidence. Pure."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from chaosckpt.drill.certificate import STEPS, Interruption, Outcome, PartCheck, StepName, StepResult, worst
from chaosckpt.drill.evidence import Findings, evidence, parts, trajectory
from chaosckpt.drill.restart import ObservedRestart
from chaosckpt.engine.node.launcher import SET_BY_HARNESS
from chaosckpt.model import journal as j
from chaosckpt.model.digest import fingerprint
from chaosckpt.model.phrasing import describe_label, plural
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.failures import root_error
from chaosckpt.oracle.phrasing import describe, tiers

OWN = SET_BY_HARNESS | {"PYTHONPATH"}
"""What the harness itself sets for a rank."""
_EXEC = "chaosckpt.engine.rank.main"


def fresh(scenario: Scenario, restart: ObservedRestart) -> tuple[list[str], list[str]]:
    """Evidence that the restoring ranks began afresh, in lines; and what speaks against it."""
    old, new, own_filters = restart.old, restart.new, restart.own_filters
    assert new is not None
    named = set(scenario.drill.environment)
    doubts = [
        f"old rank {one.rank} ran under a system call filter of the gate"
        for one in old.environments
        if one.filters > own_filters
    ]
    lines = [f"old rank {one.rank}: process {one.pid}, started at {one.began}, has ended" for one in old.environments]
    for one in new.environments:
        strange = sorted(set(one.environment) - named - OWN)
        given = ", ".join(sorted(set(one.environment) & named)) or "nothing"
        lines.append(
            f"new rank {one.rank}: process {one.pid}, started at {one.began} by exec of {one.executable}; "
            f"environment: {given} from the scenario, {', '.join(sorted(set(one.environment) & OWN))} from chaosckpt; "
            f"{plural(one.filters, 'seccomp filter')}, chaosckpt itself has {own_filters}"
        )
        who = f"rank {one.rank}"
        doubts += [f"{who} was not started by exec"] if _EXEC not in one.argv else []
        doubts += [f"{who} ran under {one.executable}"] if one.executable != (restart.python or sys.executable) else []
        doubts += [f"{who} had the environment variables {', '.join(strange)}"] if strange else []
        doubts += [f"{who} found {one.local_files[0]} on node-local storage"] if one.local_files else []
        doubts += (
            [f"{who} ran under {plural(one.filters - own_filters, 'system call filter')} of its own"]
            if one.filters > own_filters
            else []
        )
        doubts += [
            f"{who} had the temporary directory of an old rank"
            for other in old.environments
            if other.temporary == one.temporary
        ]
    absent = sorted(named - {name for one in new.environments for name in one.environment})
    if absent:
        lines.append(f"environment variables that the scenario names but that are not set: {', '.join(absent)}")
    if len(new.environments) < restart.topology.world_size:
        doubts.append(f"only {len(new.environments)} of {restart.topology.world_size} ranks reported their environment")
    before = {(one.pid, one.began) for one in old.environments}
    doubts += [
        f"process {one.pid} is a process of the old allocation"
        for one in new.environments
        if (one.pid, one.began) in before
    ]
    if new.temporary_found:
        doubts.append(f"the new temporary directory contained {', '.join(new.temporary_found[:3])}")
    else:
        lines.append("the new ranks had a temporary directory of their own, empty when they started")
    lines += [
        f"node-local storage of old node {node}: deleted, with {plural(files, 'file')}"
        for node, files in sorted(restart.local_files.items())
    ]
    return lines, doubts


SEVERAL = 2
"""Kills of a later save that must have landed, where so many were planned, for the step to be more than an example."""
_NOTHING_SAVED = "No save was confirmed, so there was nothing to restore."


def step(
    name: StepName,
    outcome: Outcome,
    sentence: str,
    lines: Sequence[str] = (),
    *,
    held: bool | None = None,
    asked: bool = True,
    checks: Sequence[PartCheck] = (),
) -> StepResult:
    """A step's result; it held when the state survived, unless said otherwise."""
    return StepResult(
        number=STEPS.index(name) + 1,
        name=name,
        asked=asked,
        outcome=outcome,
        held=(outcome == "survived" if held is None else held) and asked,
        sentence=sentence,
        evidence=tuple(lines),
        parts=tuple(checks),
    )


def saved(restart: ObservedRestart, findings: Findings) -> StepResult:
    """Step 1: the known step was saved, every rank was told so, and the target itself lists and loads it."""
    name, known = STEPS[0], restart.known_step
    lines = evidence(findings, j.Acknowledged, j.AuditEnded, j.RankExited, attempt=0)
    wrong = findings.of_saving
    if wrong:
        return step(name, "failed", _said(wrong), lines)
    if restart.new is None:
        errors = [at.event for at in findings.view.all(j.Raised)]
        first = root_error(errors)
        said = "no rank reported an error" if first is None else describe(first)
        return step(
            name,
            "failed clearly" if errors else "failed",
            f"The save of step {known} was not confirmed: {said}.",
            lines,
        )
    acks = [at.event for at in findings.view.all(j.Acknowledged) if at.event.attempt == 0 and at.event.step == known]
    levels = tiers(ack.level for ack in acks)
    audits = [at.event for at in findings.view.all(j.AuditEnded) if (at.event.attempt, at.event.as_of) == (0, None)]
    if any(known not in audit.retained for audit in audits):
        said = ", ".join(map(str, audits[0].retained)) or "nothing"
        return step(name, "failed", f"Every rank acknowledged step {known}, but the target lists {said}.", lines)
    listed = (
        "; asked by new ranks, the target lists this step as complete"
        if audits
        else "; the target offers no list of its checkpoints, so nothing else confirms the save"
    )
    who = f"all {len({ack.rank for ack in acks})} ranks" if len(acks) > 1 else "the only rank"
    return step(
        name, "survived", f"Step {known} was saved, and {who} acknowledged it as safe on {levels}{listed}.", lines
    )


def ended(scenario: Scenario, restart: ObservedRestart) -> StepResult:
    """Step 2: the old processes are gone, and the new ones began without anything of theirs but what the scenario names."""
    name = STEPS[1]
    if restart.new is None:
        return step(name, "not tested", _NOTHING_SAVED)
    lines, doubts = fresh(scenario, restart)
    if doubts:
        return step(
            name,
            "not tested",
            f"The new allocation was not fresh: {'; '.join(doubts)}.",
            lines,
        )
    return step(
        name,
        "survived",
        "The job ended; exec started new processes with an empty temporary directory, without the storage of the old nodes, and with "
        "only those variables of the old environment that the scenario names.",
        lines,
    )


def restored(restart: ObservedRestart, findings: Findings, name: StepName = STEPS[2]) -> StepResult:
    """Step 3: every part of the state came back on every rank."""
    if restart.new is None:
        return step(name, "not tested", _NOTHING_SAVED)
    lines = evidence(findings, j.StorageDestroyed, j.Recovered, j.Raised, attempt=1)
    checks = parts(findings, restart.known_step)
    if findings.refused:
        said = f"Every rank failed with an error that names the checkpoint: {findings.refused}"
        return step(name, "failed clearly", said, lines, checks=checks)
    wrong = findings.of_restoring
    if wrong:
        return step(name, "failed", _said(wrong), lines, checks=checks)
    different = [check for check in checks if not check.equal]
    if different:
        first = different[0]
        return step(
            name, "failed", f"The {first.part} of {_whose(first)} differs from the saved state.", lines, checks=checks
        )
    if findings.resumed_from is None or not checks:
        why = findings.verdict.reason or "not every rank finished recovery"
        return step(name, "not tested", f"The restore could not be judged: {why}.", lines, checks=checks)
    ranks = restart.topology.world_size
    who = f"{ranks} ranks" if ranks > 1 else "the only rank"
    own = any(not check.expected for check in checks)
    streams = "and data position" if own else "random streams and data position"
    sentence = (
        f"Step {findings.resumed_from} was restored on {who}: step, parameters, optimizer, scheduler, {streams} equal the saved state"
        f"{', and every rank has random streams of its own' if own else ''} ({len(checks)} digests)."
    )
    return step(name, "survived", sentence, lines, checks=checks)


def trained(scenario: Scenario, restart: ObservedRestart, findings: Findings) -> StepResult:
    """Step 4: what was trained from there on is what an uninterrupted job trains."""
    name = STEPS[3]
    if restart.new is None:
        return step(name, "not tested", _NOTHING_SAVED)
    wrong = findings.of_training
    lines = evidence(findings, j.Reference, j.Finished, j.AttemptEnded, attempt=1)
    if findings.refused or findings.of_restoring:
        return step(
            name,
            "not tested",
            "The job did not start with the saved state, so the training could not be compared.",
            lines,
        )
    if wrong:
        return step(name, "failed", _said(wrong), lines)
    found = trajectory(findings, scenario.drill.tolerance)
    wanted = range(restart.known_step + 1, scenario.workload.steps + 1)
    if _other_streams(findings):
        return step(
            name,
            "not tested",
            "The ranks started with random streams of their own, so losses could not be compared.",
            lines,
        )
    if found is None or list(found.steps) != list(wanted) or findings.verdict.outcome != "pass":
        why = findings.verdict.reason or "the golden trajectory is missing"
        return step(name, "not tested", f"The training could not be compared: {why}.", lines)
    span = f"Steps {wanted[0]} to {wanted[-1]}" if len(wanted) > 1 else f"Step {wanted[0]}"
    if found.bitwise:
        return step(
            name,
            "survived",
            f"{span} equal the golden trajectory, trained without a checkpointer, bit for bit.",
            lines,
        )
    sentence = (
        f"{span} follow the golden trajectory: losses differ by at most {found.largest_difference:.3g}, within the declared tolerance "
        f"of {found.tolerance:g} ({scenario.drill.tolerance_reason})."
    )
    return step(name, "survived", sentence, lines)


def interruption(findings: Findings) -> Interruption:
    """One kill of the later save, and how the job went on."""
    landed = next((at.event for at in findings.view.all(j.FaultInjected)), None)
    missed = next((at.event for at in findings.view.all(j.FaultNotInjected)), None)
    at = landed.evidence if landed is not None else missed.reason if missed is not None else "?"
    outcome = findings.outcome if landed is not None else "not tested"
    if outcome == "failed clearly":
        said = f"the job failed with an error that names the checkpoint: {findings.refused}"
        if findings.violations:
            said += f". The job should have continued: {findings.violations[0].sentence}"
    elif outcome == "failed":
        said = _said(findings.violations)
    elif outcome == "not tested":
        said = (
            f"the kill was not injected: {at}"
            if landed is None
            else findings.verdict.reason or "the job restored nothing"
        )
    else:
        said = f"the job continued from the complete checkpoint of step {findings.resumed_from} and ended like an uninterrupted job"
    return Interruption(
        at=at,
        label=landed.label if landed is not None else "",
        outcome=outcome,
        held=findings.verdict.outcome == "pass" and outcome != "not tested",
        resumed_from=findings.resumed_from,
        sentence=said,
    )


def _doing(label: str) -> str:
    doing = describe_label(label)
    return f", {doing}" if doing else ""


def interrupted(scenario: Scenario, found: Sequence[Interruption], later_step: int, gate: str) -> StepResult:
    """Step 5: after each kill the last complete checkpoint was restored, or the job said clearly that it can't go on."""
    name = STEPS[4]
    if not found:
        return step(name, "not tested", f"The save of step {later_step} was never interrupted.")
    lines = tuple(f"{one.outcome}: killed {one.at}{_doing(one.label)}: {one.sentence}" for one in found)
    tested = [one for one in found if one.outcome != "not tested"]
    where = "at stage boundaries" if gate == "none" else "at exact storage operations"
    broken = [one for one in tested if not one.held]
    if broken:
        first = broken[0]
        return step(
            name,
            worst([one.outcome for one in broken]),
            f"Killed while saving step {later_step}, {first.at}: {first.sentence}",
            lines,
            held=False,
        )
    if len(tested) < min(SEVERAL, len(found)):
        return step(
            name,
            "not tested",
            f"Only {len(tested)} of {plural(len(found), 'kill')} hit the save of step {later_step}.",
            lines,
        )
    steps = sorted({one.resumed_from for one in tested if one.resumed_from is not None})
    outcome = worst([one.outcome for one in tested])
    ended = f"each time the job continued from a complete checkpoint (step {' or '.join(map(str, steps))})"
    if outcome == "failed clearly":
        ended = "each time the job continued from a complete checkpoint or, if the target promises nothing, failed with a clear error"
    sentence = (
        f"The save of step {later_step} was killed {where}, at {len(tested)} of {plural(len(found), 'point')}: {ended}."
    )
    return step(name, outcome, sentence, lines, held=True)


def resized(scenario: Scenario, changes: Sequence[tuple[ObservedRestart, Findings]]) -> StepResult:
    """Step 6: what one number of ranks saved is restored by another."""
    name = STEPS[5]
    if not scenario.drill.restore_ranks:
        return step(name, "not tested", "The scenario names no other topology (drill.restore_ranks).", asked=False)
    if not changes:
        return step(name, "not tested", _NOTHING_SAVED)
    return _several(name, [(f"as {restart.topology}", restart, findings) for restart, findings in changes], scenario)


def elsewhere(scenario: Scenario, found: tuple[ObservedRestart, Findings] | None) -> StepResult:
    """Step 7: what one interpreter saved is restored by another."""
    name = STEPS[6]
    if not scenario.drill.restore_python:
        return step(name, "not tested", "The scenario names no other interpreter (drill.restore_python).", asked=False)
    if found is None:
        return step(name, "not tested", _NOTHING_SAVED)
    return _several(name, [(f"under {scenario.drill.restore_python}", *found)], scenario)


def _several(name: StepName, found: Sequence[tuple[str, ObservedRestart, Findings]], scenario: Scenario) -> StepResult:
    results = []
    sentences = []
    for how, restart, findings in found:
        there, again = restored(restart, findings), trained(scenario, restart, findings)
        sentences.append(f"{how[0].upper()}{how[1:]}: {there.sentence} {again.sentence}")
        counted = [saved(restart, findings), ended(scenario, restart), there]
        if again.outcome != "not tested" or not _other_streams(findings):
            counted.append(again)
        results += [(how, one) for one in counted]
    outcome, sentence = worst([one.outcome for _, one in results]), " ".join(sentences)
    if outcome != "survived":
        # What came of it is told by the first thing that went wrong; what was not tested follows from that.
        how, first = next(pair for pair in results if pair[1].outcome == outcome)
        sentence = f"{how[0].upper()}{how[1:]}: {first.sentence}"
    lines = [f"{how}: {line}" for how, one in results for line in one.evidence]
    checks = [check for _, one in results for check in one.parts]
    return step(name, outcome, sentence, lines, checks=checks)


def _other_streams(findings: Findings) -> bool:
    """Whether another number of ranks went on with other random streams than the golden job, as the target is free to let it."""
    attempt = findings.attempt
    if attempt is None or findings.view.attempts[0].world_size == attempt.world_size:
        return False
    begun = tuple(fingerprint(at.event.digest.rng) for at in attempt.recovered)
    return any(at.event.start_rng != begun for at in attempt.all(j.Reference))


def _said(violations: Sequence[Violation]) -> str:
    return violations[0].sentence


def _whose(check: PartCheck) -> str:
    return "all ranks" if check.rank is None else f"rank {check.rank}"
