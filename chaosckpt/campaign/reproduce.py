"""Reproducing: a finding's shrunk schedule, or a trial drawn again from its name, is run some times, without Ray."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec

from chaosckpt.campaign import finding_store
from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.findings.evidence import CODE, described
from chaosckpt.campaign.options import ReproduceOptions, parse_trial
from chaosckpt.campaign.preparation import CENSUS, cached, deadlines_of, prepare
from chaosckpt.engine.golden import cache
from chaosckpt.engine.subjects import Prepared, Subject, subject_of
from chaosckpt.engine.wire import versions
from chaosckpt.errors import UsageError
from chaosckpt.model import formats
from chaosckpt.model.census import Census
from chaosckpt.model.phrasing import describe_operation
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import Schedule, decode
from chaosckpt.model.summary import Replay, Reproduction
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.plugins import fault_kinds
from chaosckpt.report.reproduction import NAME as SCRIPT
from chaosckpt.scenario import load as scenario
from chaosckpt.strategies.drawing import draw

MOST_DIFFERENCES = 6


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to replay, and what is expected to be seen."""

    subject: Subject
    schedule: Schedule
    trial: str
    expected: Violation | None = None
    census: Census
    differences: tuple[str, ...] = ()


def reproduce(options: ReproduceOptions, progress: Callable[[Replay], None]) -> Reproduction:
    """Replay as often as asked. Raises UsageError for a folder or a trial that can't be read."""
    case = _finding(Path(options.finding)) if options.finding is not None else _trial(options)
    arena = case.subject.open_arena()
    replays: list[Replay] = []
    try:
        executor = Executor(
            case.subject, arena, deadlines_of(case.census), SharedExclusiveLock(), lambda trial, event: None
        )
        for number in range(1, options.times + 1):
            executed = executor.run(case.schedule, case.trial)
            replays.append(_replay(number, executed.verdict, case.expected, replays))
            progress(replays[-1])
    finally:
        arena.close()
    return Reproduction(
        trial=case.trial,
        faults=tuple(described(fault, case.census) for fault in case.schedule.faults),
        replays=tuple(replays),
        expected=case.expected.sentence if case.expected is not None else "",
        differences=case.differences,
    )


def _replay(number: int, verdict: Verdict, expected: Violation | None, before: list[Replay]) -> Replay:
    primary = verdict.primary
    if expected is not None:
        same = primary is not None and primary.invariant == expected.invariant
    else:
        same = not before or before[0].outcome == verdict.outcome
    sentence = primary.sentence if primary is not None else verdict.reason
    return Replay(number=number, outcome=verdict.outcome, same=same, sentence=sentence)


def _finding(folder: Path) -> _Case:
    stored = finding_store.read(folder)
    found = _scenario_of(folder)
    try:
        census = formats.read_json((folder / CENSUS).read_bytes(), Census)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{folder / CENSUS} can't be read: {error}; copy the whole folder of the finding") from error
    if not census.runs:
        raise UsageError(f"{folder / CENSUS} has no golden run; copy the whole folder of the finding")
    schedule = decode(stored.finding.shrunk, fault_kinds().values())
    prepared = cached(found)
    differences = _versions(stored.environment)
    if differences or (prepared is None and subject_of(found).needs_golden_runs):
        prepared = prepare(found)
        differences += _operations(census, prepared.census)
    known = Prepared(census=census) if prepared is None else msgspec.structs.replace(prepared, census=census)
    return _Case(
        subject=subject_of(found, known),
        schedule=schedule,
        trial=stored.finding.trial,
        expected=stored.finding.violation,
        census=census,
        differences=tuple(differences),
    )


def _scenario_of(folder: Path) -> Scenario:
    """The finding's scenario. Its code is what it was found with as long as all of that is there, else the copy."""
    try:
        found = scenario.read(folder / "scenario.toml")
    except UsageError:
        copy = _of_copy(folder)
        if copy is None:
            raise
        return copy
    copy = _of_copy(folder)
    return copy if copy is not None and _lacks_code(found, copy) else found


def _of_copy(folder: Path) -> Scenario | None:
    """The scenario with the code that lies in the folder; None where none does, or it can't be read."""
    place = folder / CODE if (folder / CODE).is_dir() else folder
    try:
        data = tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    tables = {name: table for name, table in data.items() if isinstance(table, dict)}
    copied = {path.name: path.absolute() for path in place.glob("*.py") if place != folder or path.name != SCRIPT}
    file, _, name = str(tables.get("target", {}).get("use", "")).rpartition(":")
    argv = tables.get("command", {}).get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list) else []
    own = copied.get(os.path.basename(file)) or copied.get(f"copy_of_{os.path.basename(file)}")
    if own is not None:
        data["target"]["use"] = f"{own}:{name}"
    elif words := [
        word for word in map(str, tables.get("command", {}).get("argv") or ()) if os.path.basename(word) in copied
    ]:
        argv = [os.path.basename(word) if word in words else word for word in data["command"]["argv"]]
        data["command"] |= {"argv": argv, "directory": str(place.absolute())}
    else:
        return None
    return scenario.parse(data, folder)


def _lacks_code(found: Scenario, copy: Scenario) -> bool:
    """Whether a script, or a module that the copied code imports, isn't where it was any more."""
    then, now = subject_of(copy).sources(), subject_of(found).sources()
    return not (set(then.files) <= set(now.files) and len(now.roots) >= len(then.roots))


def _trial(options: ReproduceOptions) -> _Case:
    assert options.scenario is not None
    assert options.trial is not None
    seed, index = parse_trial(options.trial)
    prepared = prepare(options.scenario)
    subject = subject_of(options.scenario, prepared)
    return _Case(
        subject=subject,
        schedule=draw(seed, index, subject.scenario, prepared.census, subject.kinds()),
        trial=options.trial,
        census=prepared.census,
    )


def _versions(then: dict[str, str]) -> list[str]:
    now = cache.environment() | versions.of(*then)
    return [
        f"{name} was {then.get(name, 'unknown')} and is {now.get(name, 'unknown')}"
        for name in sorted(set(then) | set(now))
        if then.get(name) != now.get(name)
    ]


def _operations(then: Census, now: Census) -> list[str]:
    """What differs between two censuses, run by run."""
    if then.fingerprint == now.fingerprint:
        return []
    found = []
    for run in then.runs:
        other = now.run(run.topology, run.resumed_from)
        before = {point.address for point in run.points}
        after = {point.address for point in other.points} if other is not None else set()
        changed = sorted(before ^ after, key=str)
        if changed:
            start = "from step 0" if run.resumed_from is None else f"resumed from step {run.resumed_from}"
            when = "then" if changed[0] in before else "now"
            found.append(
                f"the run with {run.topology} ranks {start} has other operations, first: only {when} there is "
                f"{describe_operation(changed[0])}"
            )
    return found[:MOST_DIFFERENCES]
