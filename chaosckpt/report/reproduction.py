"""reproduce.py: whether a finding can be shown without the harness, and the script that does so. Pure."""

from __future__ import annotations

import ast
import pprint
from pathlib import Path
from typing import Any

from chaosckpt.model import journal as j
from chaosckpt.model.finding import StoredStorage
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Violation
from chaosckpt.report.subject_terms import AUDITED, BARE, Impossible, SubjectTerms, attempt_shown, terms_of

__all__ = ["NAME", "Impossible", "attempt_shown", "script"]

NAME = "reproduce.py"
TIMEOUT_SECONDS = 120
_STANDALONE = Path(__file__).parent / "standalone"


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
    terms = terms_of(scenario)
    _require_possible(terms, violation, events, storage)
    case = terms.case(violation, events, place, scripts)
    case = {"claim": _claim(terms, violation, case), **case, "timeout_seconds": TIMEOUT_SECONDS, **_layout(storage)}
    return _assembled(terms, case), case["claim"]


def _require_possible(
    terms: SubjectTerms, violation: Violation, events: tuple[j.AnyEvent, ...], storage: StoredStorage
) -> None:
    if violation.invariant not in terms.shown:
        raise Impossible(f"{violation.invariant} is judged by more than a recovery: by {terms.judge}")
    if any(_of_a_moment(events[index]) for index in violation.evidence if index < len(events)):
        raise Impossible(
            "it shows in storage as it was when the step was acknowledged, and by the end of the attempt the job has changed that"
        )
    if attempt_shown(violation) == violation.attempt:
        if violation.attempt == 0:
            raise Impossible("it shows in the first launch, which finds nothing stored")
        struck = next((event for event in events if _struck(event, violation.attempt)), None)
        if struck is not None:
            raise Impossible("a fault strikes the recovery itself, so that the stored files alone don't show it")
    if storage.missing:
        raise Impossible(storage.missing)


def _of_a_moment(event: j.AnyEvent) -> bool:
    """Whether an audit tells this of storage as it was within an attempt, which is not what is stored."""
    return isinstance(event, j.Audited | j.AuditEnded) and event.as_of is not None


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


def _claim(terms: SubjectTerms, violation: Violation, case: dict[str, Any]) -> str:
    who = terms.recovery.format_map(case)
    step = f"step {case['required']}"
    found = {
        "newest-complete": f"{who} must resume from {step} or a newer complete step",
        BARE: f"{who} must resume from {step} or a newer complete step",
        AUDITED: f"{step} was acknowledged: it must still be listed, and must load as it was saved",
        "clear-failure": f"where {who} can't resume, it must fail with an error that names the checkpoint",
        "progress": f"{who} must resume and come to its end",
        "result-equal": f"{who} must end with the result of an uninterrupted run",
    }
    return "Checks, on the files as the crash left them: " + (
        found.get(violation.invariant) or f"{who} must load one saved state whole, on every rank alike, or fail clearly"
    )


def _assembled(terms: SubjectTerms, case: dict[str, Any]) -> str:
    """One script of its own: the template with the case, and with the basis in place of its import."""
    imports: list[str] = []
    bodies: list[str] = []
    for name in ("basis", terms.template):
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
    head = f'"""{case["claim"]}.\n\n{terms.manual}\n"""'
    return "\n\n".join([head, future, "\n".join(ordered), "\n\n\n".join(bodies)]) + "\n"
