"""reproduce.py: whether a finding can be shown without the harness, and the script that does so. Pure."""

from __future__ import annotations

import ast
import os
import pprint
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from chaosckpt.model import journal as j
from chaosckpt.model.finding import StoredStorage
from chaosckpt.model.scenario import OUT, Scenario
from chaosckpt.model.verdict import Violation
from chaosckpt.report.standalone.target import held_by

NAME = "reproduce.py"
TIMEOUT_SECONDS = 120
_RECOVERIES = ("newest-complete", "complete-only", "full-state", "rank-agreement", "reported-step", "clear-failure")
_AUDITED = "durable-acknowledgement"
_BARE = "always-recoverable"
_LAUNCHES = ("newest-complete", "complete-only", "clear-failure", "progress", "result-equal", _BARE)
_REQUIRING = ("newest-complete", _AUDITED, _BARE)
_COMPARING = ("complete-only", "full-state", "reported-step", "rank-agreement", _AUDITED)
_STANDALONE = Path(__file__).parent / "standalone"


class Impossible(Exception):
    """A finding that can't be shown by a plain recovery; its text says why."""


def attempt_shown(violation: Violation) -> int:
    """The number of the attempt that finds the storage on which the violation shows: what is audited is found by the next one."""
    return violation.attempt + (violation.invariant in (_AUDITED, _BARE))


def script(
    scenario: Scenario,
    violation: Violation,
    events: tuple[j.AnyEvent, ...],
    storage: StoredStorage,
    place: tuple[str, str, str],
    scripts: dict[str, str],
) -> tuple[str, str]:
    """(the text of reproduce.py, the sentence that says what it checks). Raises Impossible.

    `place` is a target's (module, file, class), one of the first two empty; `scripts` are the files among a command's words that
    lie beside the script, by those words.
    """
    _require_possible(scenario, violation, events, storage)
    if scenario.command is not None:
        case = _command_case(scenario, violation, events, scripts)
        template = "command"
    else:
        case = _target_case(scenario, violation, events, place)
        template = "target"
    case = {"claim": _claim(scenario, violation, case), **case, **_layout(storage)}
    return _assembled(template, case), case["claim"]


def _require_possible(
    scenario: Scenario, violation: Violation, events: tuple[j.AnyEvent, ...], storage: StoredStorage
) -> None:
    known = (*_RECOVERIES, _AUDITED) if scenario.command is None else _LAUNCHES
    if violation.invariant not in known:
        what = "the training after it" if scenario.command is None else "what the script tells the harness"
        raise Impossible(f"{violation.invariant} is judged by more than a recovery: by {what}")
    if attempt_shown(violation) == violation.attempt:
        if violation.attempt == 0:
            raise Impossible("it shows in the first launch, which finds nothing stored")
        struck = next((event for event in events if _struck(event, violation.attempt)), None)
        if struck is not None:
            raise Impossible("a fault strikes the recovery itself, so that the stored files alone don't show it")
    if storage.missing:
        raise Impossible(storage.missing)


def _struck(event: j.AnyEvent, attempt: int) -> bool:
    if event.attempt != attempt:
        return False
    return isinstance(event, j.ErrorInjected) or (isinstance(event, j.FaultInjected) and event.operation is not None)


def _layout(storage: StoredStorage) -> dict[str, Any]:
    places = sorted({entry.place for entry in storage.files})
    deepest = sorted(storage.files, key=lambda entry: (-entry.path.count("/"), entry.path))
    return {
        "places": places,
        "roots": dict(storage.roots)
        if storage.mentions or any(entry.kind == "link" for entry in storage.files)
        else {},
        "mentions": list(storage.mentions),
        "directories": [entry.path for entry in storage.files if entry.kind == "directory"],
        "links": [(entry.path, entry.link) for entry in storage.files if entry.kind == "link"],
        "times": [(entry.path, entry.modified_ns) for entry in deepest if entry.kind != "link" and entry.modified_ns],
    }


def _started(events: Iterable[j.AnyEvent], attempt: int) -> j.AttemptStarted:
    launches = [event for event in events if isinstance(event, j.AttemptStarted)]
    return next((event for event in launches if event.attempt == attempt), launches[-1])


def _target_case(
    scenario: Scenario, violation: Violation, events: tuple[j.AnyEvent, ...], place: tuple[str, str, str]
) -> dict[str, Any]:
    started = _started(events, violation.attempt)
    module, file, name = place
    saves = [] if violation.invariant not in _COMPARING else _saves(events, violation.attempt)
    compared = _comparable(started, saves)
    if saves and not compared and violation.invariant in ("complete-only", "full-state"):
        raise Impossible(
            "another number of ranks recovers than saved, so that the parts of the state can't be compared plainly"
        )
    audited = violation.step if violation.invariant == _AUDITED else None
    return {
        "module": module,
        "file": file,
        "class": name,
        "options": msgspec.to_builtins(scenario.target.options),
        "workload": msgspec.to_builtins(scenario.workload),
        "ranks": list(started.ranks),
        "intent": started.intent,
        "attempt": attempt_shown(violation),
        "audited": audited,
        "required": violation.step if violation.invariant in _REQUIRING else None,
        "must_speak": violation.invariant == "clear-failure" and scenario.run.fresh_start == "refused",
        "compared": compared,
        "saves": saves,
        "timeout_seconds": TIMEOUT_SECONDS,
    }


def _saves(events: Iterable[j.AnyEvent], attempt: int) -> list[dict[str, Any]]:
    """What each rank held when it saved, as checksums of the parts: one entry a save."""
    found: dict[tuple[int, int], dict[str, dict[str, str]]] = {}
    for event in events:
        if isinstance(event, j.SaveStarted) and event.attempt <= attempt:
            found.setdefault((event.step, event.attempt), {})[str(event.rank)] = held_by(event.digest)
    return [{"step": step, "held": held} for (step, _), held in sorted(found.items())]


def _comparable(started: j.AttemptStarted, saves: list[dict[str, Any]]) -> list[str]:
    """The parts that compare: all of them, as long as as many ranks recover as saved."""
    same = all(len(save["held"]) == sum(started.ranks) for save in saves)
    return list(next(iter(saves[0]["held"].values()))) if saves and same else []


def _command_case(
    scenario: Scenario, violation: Violation, events: tuple[j.AnyEvent, ...], scripts: dict[str, str]
) -> dict[str, Any]:
    command = scenario.command
    assert command is not None
    started = _started(events, attempt_shown(violation))
    seen = [event for event in events if isinstance(event, j.CheckpointsSeen) and event.attempt < started.attempt]
    compared = [event for event in events if isinstance(event, j.ResultCompared)]
    compares = violation.invariant == "result-equal" and bool(compared)
    if violation.invariant == _BARE and not command.resumed:
        raise Impossible("the command doesn't tell which step it resumes from (--resumed)")
    words = command.words(OUT, sum(started.ranks), resuming=started.intent == "resume")
    python = os.path.basename(words[0]).startswith("python")
    return {
        "argv": ["{python}" if python else words[0], *words[1:]],
        "scripts": scripts,
        "required": violation.step if violation.invariant in _REQUIRING else None,
        "must_speak": violation.invariant == "clear-failure",
        "must_end": violation.invariant == "progress",
        "resumed": command.resumed or "",
        "incomplete": list(seen[-1].partial) if seen and violation.invariant == "complete-only" else [],
        "result": compared[-1].expected if compares else None,
        "result_file": command.result or "",
        "result_command": command.result_command or "",
        "tolerance": command.tolerance,
        "timeout_seconds": TIMEOUT_SECONDS,
    }


def _claim(scenario: Scenario, violation: Violation, case: dict[str, Any]) -> str:
    who = "the command" if scenario.command is not None else f"{case['class']}.recover"
    step = f"step {case['required']}"
    found = {
        "newest-complete": f"{who} must resume from {step} or a newer complete step",
        _BARE: f"{who} must resume from {step} or a newer complete step",
        _AUDITED: f"{step} was acknowledged: it must still be listed, and must load as it was saved",
        "clear-failure": f"where {who} can't resume, it must fail with an error that names the checkpoint",
        "progress": f"{who} must resume and come to its end",
        "result-equal": f"{who} must end with the result of an uninterrupted run",
    }
    return "Checks, on the files as the crash left them: " + (
        found.get(violation.invariant) or f"{who} must load one saved state whole, on every rank alike, or fail clearly"
    )


def _assembled(template: str, case: dict[str, Any]) -> str:
    """One script of its own: the template with the case, and with the basis in place of its import."""
    imports: list[str] = []
    bodies: list[str] = []
    for name in ("basis", template):
        lines = (_STANDALONE / f"{name}.py").read_text(encoding="utf-8").splitlines()
        last = 0
        kept: list[str] = []
        for node in ast.parse("\n".join(lines)).body:
            end = node.end_lineno or node.lineno
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chaosckpt")):
                    imports += lines[node.lineno - 1 : end]
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CASE":
                shown = pprint.pformat(case, width=116, sort_dicts=False)
                kept += [*lines[last : node.lineno - 1], f"CASE: dict[str, Any] = {shown}"]
            elif not (isinstance(node, ast.Expr) and node.lineno == 1):
                kept += lines[last:end]
            last = end
        bodies.append("\n".join(kept).strip())
    future = "from __future__ import annotations"
    ordered = sorted(set(imports) - {future}, key=lambda line: (line.startswith("from"), line))
    head = f'"""{case["claim"]}.\n\n{_HOW[template]}\n"""'
    return "\n\n".join([head, future, "\n".join(ordered), "\n\n\n".join(bodies)]) + "\n"


_HOW = {
    "target": """Exits 1 while the fault is there, 0 once it is mended, 2 where it can't be told. Needs torch, and chaosckpt for the
base class of the code under test and for the small training job whose state it loads; no fault is injected, nothing is traced.
`storage/` must lie beside this script; it is what the interrupted save left, so that only a mended recovery changes the answer.
The checksums in CASE tell what each rank held when it saved.""",
    "command": """Exits 1 while the fault is there, 0 once it is mended, 2 where it can't be told. Needs only what the command needs.
`storage/` must lie beside this script; it is what the interrupted save left, so that only a mended recovery changes the answer.""",
}
