"""A finding in one line for the authors of the code under test: what interrupted it, and what that does to a restart. Pure."""

from __future__ import annotations

from chaosckpt.model.finding import Finding
from chaosckpt.model.phrasing import describe_path
from chaosckpt.model.scenario import Scenario
from chaosckpt.report.subject_terms import terms_of

_DEATHS = frozenset({"cut", "sigkill", "sigstop", "node-loss", "saver-kill"})
_ENDS = {
    "sigterm": "SIGTERM",
    "space": "a full disk",
    "short-write": "a short write",
    "errno": "a storage error",
    "read-only": "storage that became read-only",
    "unavailable": "storage that was unavailable for a while",
    "latency": "slow storage",
    "hold-until": "a delayed operation",
    "not-visible": "a file that is not visible yet",
    "bit-flip": "a flipped bit",
    "truncation": "a truncated file",
    "stale-save": "a stale checkpoint left behind",
    "mtimes": "changed modification times",
    "world-size": "a change of the number of ranks",
    "local-storage-loss": "the loss of node-local storage",
    "shared-storage-loss": "the loss of shared storage",
}
_STAGES = {
    "snapshot": "during a save",
    "persist": "during a save",
    "commit": "while a save is committed",
    "retire": "while an old checkpoint is removed",
    "discover": "while a checkpoint is looked for",
    "load": "while a checkpoint is loaded",
}


def title(finding: Finding, scenario: Scenario) -> str:
    """As in "DcpOverwrite: after a crash during a save, recovery fails (EOFError), although an earlier save had completed"."""
    return f"{terms_of(scenario).name}: after {_interruption(finding)}, {_consequence(finding)}"


def expected(finding: Finding, scenario: Scenario) -> str:
    """What should have happened, in a sentence or two."""
    violation = finding.violation
    step = f" (step {violation.step})" if violation.step is not None else ""
    known = {
        "newest-complete": f"A restart resumes from the newest completed save{step}, or from a newer complete one.",
        "complete-only": "A restart loads one save whole, or fails with a clear error; it never loads a torn or mixed checkpoint.",
        "full-state": "Everything that was saved comes back: parameters, optimizer, scheduler, random streams, data position.",
        "rank-agreement": "Every rank resumes from the same save.",
        "durable-acknowledgement": f"A save that was acknowledged{step} can be loaded.",
        "reported-step": "Recovery reports the step that it has loaded.",
        "always-recoverable": f"Once a save had completed{step}, a complete checkpoint is always left.",
        "clear-failure": "A restart that can't resume fails in time, with an error that names the checkpoint.",
        "progress": "After the restart the job comes to its end.",
        "result-equal": "The job ends with the result of an uninterrupted run.",
    }
    return known.get(violation.invariant) or f"{capital(violation.expected)}."


def _interruption(finding: Finding) -> str:
    kinds = [str(fault.get("kind", "")) for plan in _plans(finding) for fault in plan]
    if not kinds:
        return "a plain restart"
    cause = finding.cause
    last = kinds[-1]
    what = "a crash" if last in _DEATHS else _ENDS.get(last, "a fault")
    where = _STAGES.get(cause.stage, "")
    file = describe_path(cause.file_pattern).replace("#", "N") if cause.file_pattern else ""
    operation = "opening" if cause.operation.startswith("open_") else cause.operation
    return " ".join(filter(None, (what, where, f"({operation} of {file})" if file else "")))


def _plans(finding: Finding) -> list[list[dict[str, object]]]:
    attempts = finding.shrunk.get("attempts", [])
    plans = attempts if isinstance(attempts, list) else []
    return [plan.get("faults", []) for plan in plans if isinstance(plan, dict)]


def _consequence(finding: Finding) -> str:
    violation = finding.violation
    error = violation.error_type
    step = f"step {violation.step}" if violation.step is not None else "an earlier save"
    completed = f"although {step} had been saved completely"
    known = {
        ("newest-complete", "older-checkpoint"): f"the restart resumes from an older step, {completed}",
        ("newest-complete", "not-what-was-said"): f"the restart resumes from an older step, {completed}",
        ("newest-complete", "nothing-chosen"): f"the restart begins anew, {completed}",
        ("complete-only", "mixed-generations"): "the restart loads a mix of two saves without an error",
        ("clear-failure", "hang"): "the restart hangs",
        ("clear-failure", "silent-start"): "the restart begins anew without an error",
        ("clear-failure", "exit-0"): "the failed restart exits with status 0",
    }
    general = {
        "newest-complete": f"the restart fails ({error}), {completed}",
        "complete-only": "the restart loads a torn checkpoint without an error",
        "full-state": f"the restart loses part of the saved state ({error.replace('-', ' ')})",
        "rank-agreement": "ranks resume from different saves",
        "durable-acknowledgement": f"{step}, which had been acknowledged, can't be loaded",
        "reported-step": "recovery reports another step than it has loaded",
        "always-recoverable": "no complete checkpoint is left",
        "clear-failure": f"the restart fails with an error that names no checkpoint ({error})",
        "progress": f"the restarted job doesn't come to its end ({error})",
        "result-equal": "the job ends with another result than without the interruption",
    }
    found = known.get((violation.invariant, error)) or general.get(violation.invariant)
    return found or f"{violation.invariant} does not hold ({error})"


def capital(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]
