"""What happened in a trial, told to somebody who knows the code under test and nothing else: launch by launch, file by file. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, GoldenRun
from chaosckpt.model.finding import StoredStorage
from chaosckpt.model.operation import READING
from chaosckpt.model.phrasing import describe_path, ordinal, plural
from chaosckpt.model.topology import Topology
from chaosckpt.oracle.phrasing import chosen_by_audit

_SUFFIXES = (".tmp", ".new", ".part", ".partial")
_SHOWN = 200


def story(events: Sequence[j.AnyEvent], told: Mapping[tuple[int, int], str]) -> tuple[str, ...]:
    """One entry for each launch, in order. `told` has the faults in words, by attempt and place in its plan."""
    launches: list[list[j.AnyEvent]] = []
    between: list[j.AnyEvent] = []
    for event in events:
        if isinstance(event, j.AttemptStarted):
            launches.append([*between, event])
            between = []
        elif isinstance(event, j.FaultInjected | j.StorageDestroyed | j.StorageMutated) and (
            not launches or event.attempt != launches[-1][-1].attempt
        ):
            between.append(event)
        elif launches and event.attempt == launches[-1][-1].attempt:
            launches[-1].append(event)
    return tuple(_launch(launch, told) for launch in launches)


def _launch(events: Sequence[j.AnyEvent], told: Mapping[tuple[int, int], str]) -> str:
    started = next(event for event in events if isinstance(event, j.AttemptStarted))
    before = events[: events.index(started)]
    world = sum(started.ranks)
    begins = "restarts and recovers" if started.intent == "resume" else "starts with nothing saved"
    who = plural(world, "rank")
    lines = [f"{ordinal(started.attempt + 1).capitalize()} launch: the job ({who}) {begins}."]
    found = [sentence for event in before if (sentence := _between(event, told))]
    lines = [f"Before the {ordinal(started.attempt + 1)} launch: {'; '.join(found)}.", *lines] if found else lines
    lines += _recoveries(events, started)
    lines += _saves(events, world)
    resumed = [str(event.step) for event in _all(events, j.Said) if event.what == "resumed"]
    lines += [f"It reports that it resumed from step {', '.join(dict.fromkeys(resumed))}."] if resumed else []
    steps = [str(event.step) for event in _all(events, j.Said) if event.what == "saved"]
    lines += [f"It reports as saved: step {', step '.join(dict.fromkeys(steps))}."] if steps else []
    after = events[events.index(started) :]
    lines += [f"Fault: {_fault(event, told)}." for event in after if isinstance(event, j.FaultInjected)]
    lines += _ends(events)
    lines += _left(events)
    return " ".join(lines)


def _all(events: Iterable[j.AnyEvent], kind: type) -> list:  # type: ignore[type-arg]
    return [event for event in events if isinstance(event, kind)]


def _fault(event: j.FaultInjected, told: Mapping[tuple[int, int], str]) -> str:
    return told.get((event.attempt, event.fault), event.kind)


def _between(event: j.AnyEvent, told: Mapping[tuple[int, int], str]) -> str:
    match event:
        case j.FaultInjected():
            return _fault(event, told)
        case j.StorageDestroyed():
            where = "" if event.node is None else f" of node {event.node}"
            return f"the {event.tier} storage{where} is lost ({plural(event.files, 'file')})"
        case j.StorageMutated():
            return f"{describe_path(event.path) if event.path else event.tier}: {event.what}"
    return ""


def _recoveries(events: Sequence[j.AnyEvent], started: j.AttemptStarted) -> list[str]:
    """What recovery loaded, and how it failed; equal answers of several ranks once."""
    answers: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, j.Recovered) and (event.chosen is not None or started.intent == "resume"):
            what = "finds nothing to load" if event.chosen is None else f"says that it loaded step {event.chosen}"
            answers.setdefault(f"recovery {what}", []).append(event.rank)
        elif isinstance(event, j.Raised):
            where = {"recover": "recovery fails", "save": f"the save of step {event.step} fails"}.get(
                event.where, "training fails"
            )
            answers.setdefault(f"{where} ({event.error_type}: {last_line(event.message)})", []).append(event.rank)
    return [f"{_ranks(ranks, sum(started.ranks))}: {what}." for what, ranks in answers.items()]


def _ranks(ranks: Sequence[int], world: int) -> str:
    known = sorted(set(ranks))
    if len(known) == world and world > 1:
        return "On every rank"
    return f"On rank {known[0]}" if len(known) == 1 else "On ranks " + " and ".join(map(str, known))


def _saves(events: Sequence[j.AnyEvent], world: int) -> list[str]:
    acknowledged = acknowledged_steps(events, world)
    steps: dict[str, list[int]] = {}
    for step in dict.fromkeys(event.step for event in _all(events, j.SaveStarted)):
        steps.setdefault(acknowledged.get(step, ""), []).append(step)
    lines = []
    for levels, saved in steps.items():
        one = len(saved) == 1
        which = f"Step {saved[0]}" if one else f"Steps {', '.join(map(str, saved[:-1]))} and {saved[-1]}"
        safe = f"{'is' if one else 'are'} saved, and every rank is told that {'it is' if one else 'they are'} safe on {levels} storage"
        lines.append(f"{which} {safe}." if levels else f"{which} {'begins' if one else 'begin'} to be saved.")
    lines += [
        f"Rank {event.rank}'s save of step {event.step} raises {event.error_type}, and training goes on."
        for event in _all(events, j.SaveFailed)
    ]
    return lines


def acknowledged_steps(events: Iterable[j.AnyEvent], world: int) -> dict[int, str]:
    """The steps that every rank of a launch was told are safe, with the tiers."""
    told: dict[int, set[int]] = {}
    levels: dict[int, set[str]] = {}
    for event in events:
        if isinstance(event, j.Acknowledged):
            told.setdefault(event.step, set()).add(event.rank)
            levels.setdefault(event.step, set()).add({"local": "node-local"}.get(event.level, event.level))
    return {step: " and ".join(sorted(levels[step])) for step, ranks in told.items() if len(ranks) == world}


def _ends(events: Sequence[j.AnyEvent]) -> list[str]:
    lines = []
    raised = {event.rank for event in _all(events, j.Raised)}
    for event in _all(events, j.RankExited):
        if event.by == "self" and event.rank not in raised and event.exit_code:
            said = f": {last_line(event.stderr_tail)}" if event.stderr_tail.strip() else ""
            lines.append(f"The process of rank {event.rank} ends with status {event.exit_code}{said}.")
    ended = [event.outcome for event in _all(events, j.AttemptEnded)]
    if "hung" in ended:
        lines.append("The job hangs.")
    if "finished" in ended:
        lines.append("The job comes to its end.")
    return lines


def _left(events: Sequence[j.AnyEvent]) -> list[str]:
    """What was looked at on storage after the launch."""
    lines = []
    for event in events:
        match event:
            case j.Audited() if event.digest is None:
                why = f"{event.error_type}: {last_line(event.message)}"
                lines.append(f"{_when(event)} step {event.step} can't be loaded on rank {event.rank} ({why}).")
            case j.Audited() if event.chosen is not None and event.chosen < event.step:
                lines.append(f"{_when(event)} recovery on rank {event.rank} chooses {chosen_by_audit(event.chosen)}.")
            case j.AuditEnded():
                lost = [step for step in event.asked if step not in event.retained]
                words = "is no longer listed among the complete checkpoints."
                lines += [f"Afterwards step {step} {words}" for step in lost if event.as_of is None]
            case j.CheckpointsSeen():
                parts = [f"step {step} is complete" for step in event.complete]
                parts += [f"step {step} is not ({describe_path(event.differing[step])})" if step in event.differing
                          else f"step {step} is not" for step in event.partial]  # fmt: skip
                lines += [f"On storage then: {', '.join(parts)}."] if parts else []
            case j.ResultCompared() if not event.equal:
                lines.append("The result is not that of an uninterrupted run.")
    return lines


def _when(event: j.Audited) -> str:
    """The moment whose storage was audited, to begin a sentence with."""
    return "Afterwards" if event.as_of is None else f"At the moment when step {event.as_of.step} has been acknowledged,"


def last_line(text: str) -> str:
    """The last line that says something."""
    line = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def writers(census: Census, events: Sequence[j.AnyEvent], storage: StoredStorage, attempt: int) -> dict[str, str]:
    """Which save wrote each stored file last, in words, by the file's path in the finding's folder; without what isn't known.

    The ranks of a launch do what those of the golden run did that began from the same step, as far as they came.
    """
    last: dict[str, str] = {}
    chosen: int | None = None
    for start in _all(events, j.AttemptStarted):
        if start.attempt >= attempt:
            break
        own = [event for event in events if event.attempt == start.attempt]
        chosen = _resumed_from(own)
        run = census.run(Topology(start.ranks), chosen)
        counts = next((event.operations for event in _all(own, j.AttemptEnded)), ())
        if run is not None:
            done = {event.step for event in _all(own, j.Said) if event.what == "saved"}
            done |= set(acknowledged_steps(own, sum(start.ranks)))
            last |= _written(run, counts, done)
    found = {}
    for entry in storage.files:
        place, _, relative = entry.path.partition("/")
        tier = "local" if place.startswith("local-") else place
        writer = last.get(_plain(f"{tier}:{relative}"))
        if entry.kind == "file" and writer is not None:
            found[entry.path] = writer
    return found


def _resumed_from(events: Sequence[j.AnyEvent]) -> int | None:
    recovered = [event.chosen for event in _all(events, j.Recovered)]
    said = [event.step for event in _all(events, j.Said) if event.what == "resumed"]
    return next(iter([*recovered, *said]), None)


def _written(run: GoldenRun, counts: Sequence[int], done: set[int]) -> dict[str, str]:
    """By path, the last save that opened, wrote or renamed it within the first operations of each rank."""
    left = list(counts)
    found: dict[str, str] = {}
    for point in run.points:
        rank = point.address.rank
        if rank >= len(left) or left[rank] <= 0:
            continue
        left[rank] -= 1
        if point.address.op not in READING | {"close", "fsync", "mkdir"} and point.label.step is not None:
            ended = "" if point.label.step in done else ", which was interrupted"
            found[_plain(point.address.path)] = f"the save of step {point.label.step}{ended}"
    return found


def _plain(path: str) -> str:
    """A path without the endings of temporary names: what is renamed to its final name is the same file."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        for suffix in _SUFFIXES:
            parts[number] = part = part.removesuffix(suffix)
    return "/".join(parts)
