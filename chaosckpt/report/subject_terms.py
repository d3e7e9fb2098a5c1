"""What a finding's pages and its reproduce.py say of a target, and what of a command. Here alone `report` asks which it is. Pure."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from chaosckpt.model import journal as j
from chaosckpt.model.finding import Excerpt
from chaosckpt.model.phrasing import plural
from chaosckpt.model.scenario import OUT, CommandSettings, Scenario
from chaosckpt.model.verdict import Violation
from chaosckpt.report.standalone.target import held_by

AUDITED = "durable-acknowledgement"
BARE = "always-recoverable"
_REQUIRING = ("newest-complete", AUDITED, BARE)
_COMPARING = ("complete-only", "full-state", "reported-step", "rank-agreement", AUDITED)


class Impossible(Exception):
    """A finding that can't be shown by a plain recovery; its text says why."""


def terms_of(scenario: Scenario) -> SubjectTerms:
    """How the subject of a scenario is told."""
    return TargetTerms(scenario) if scenario.command is None else CommandTerms(scenario.command)


class SubjectTerms(ABC):
    """The words for one subject, and the case that its reproduce.py shows."""

    template: ClassVar[Literal["target", "command"]]
    """The module of chaosckpt.report.standalone that its reproduce.py is made from."""
    shown: ClassVar[tuple[str, ...]]
    """The invariants that a plain recovery can show."""
    judge: ClassVar[str]
    """By what the others are judged."""
    recovery: ClassVar[str]
    """Who recovers, with the keys of the case in braces."""
    run: ClassVar[str]
    """What reproduce.py runs."""
    needs: ClassVar[str] = ""
    """What must be installed for that beside the code under test."""
    manual: ClassVar[str]
    """How reproduce.py answers, for its docstring."""

    name: str
    """As a title begins."""
    line: str
    """What was tested, as in `target: dcp with keep = 2` or `command: python train.py`."""
    job: str
    """The job in two sentences."""
    command = CommandSettings(argv=())
    """A target's has no words."""
    command_line: tuple[Excerpt, ...] = ()

    @abstractmethod
    def case(
        self, violation: Violation, events: Sequence[j.AnyEvent], place: tuple[str, str, str], scripts: dict[str, str]
    ) -> dict[str, Any]:
        """CASE of its reproduce.py, without what every subject's has. Raises Impossible."""


class TargetTerms(SubjectTerms):
    """A target, by its name and options, in the harness's own training job."""

    template = "target"
    shown = (*_COMPARING, "newest-complete", "clear-failure")
    judge = "the training after it"
    recovery = "{class}.recover"
    run = "recovery"
    needs = " It needs `pip install chaosckpt`, for the small training job."
    manual = """Exits 1 while the fault is there, 0 once it is mended, 2 where it can't be told. Needs torch, and chaosckpt for the
base class of the code under test and for the small training job whose state it loads; no fault is injected, nothing is traced.
`storage/` must lie beside this script; it is what the interrupted save left, so that only a mended recovery changes the answer.
The checksums in CASE tell what each rank held when it saved."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        target, work = scenario.target, scenario.workload
        settings = ", ".join(f"{name} = {value!r}" for name, value in sorted(target.options.items()))
        options = settings and f" with {settings}"
        ranks = plural(sum(scenario.topology.ranks[0]), "rank")
        sharding = "FSDP2, sharded" if work.strategy == "fsdp2" else "DDP, replicated"
        self.name = target.use.rpartition(":")[2] or "the checkpointer"
        self.line = f"target: {target.use}{options}"
        self.job = (
            f"A small training job (PyTorch, CPU, gloo, {ranks}, {sharding}) saves every {plural(work.save_every, 'step')} "
            f"with the code below and recovers with it after a restart{options}."
        )

    def case(
        self, violation: Violation, events: Sequence[j.AnyEvent], place: tuple[str, str, str], scripts: dict[str, str]
    ) -> dict[str, Any]:
        started = _started(events, violation.attempt)
        module, file, name = place
        saves = _saves(events, violation.attempt) if violation.invariant in _COMPARING else []
        compared = _comparable(started, saves)
        if saves and not compared and violation.invariant in ("complete-only", "full-state"):
            raise Impossible(
                "another number of ranks recovers than saved, so that the parts of the state can't be compared plainly"
            )
        return {
            "module": module,
            "file": file,
            "class": name,
            "options": msgspec.to_builtins(self._scenario.target.options),
            "workload": msgspec.to_builtins(self._scenario.workload),
            "ranks": list(started.ranks),
            "intent": started.intent,
            "attempt": attempt_shown(violation),
            "audited": violation.step if violation.invariant == AUDITED else None,
            "required": _required(violation),
            "must_speak": violation.invariant == "clear-failure" and self._scenario.run.fresh_start == "refused",
            "compared": compared,
            "saves": saves,
        }


class CommandTerms(SubjectTerms):
    """A command, by its words."""

    template = "command"
    shown = ("newest-complete", "complete-only", "clear-failure", "progress", "result-equal", BARE)
    judge = "what the script tells the harness"
    recovery = "the command"
    run = "command"
    job = "The unmodified training command below. It was stopped and started again on the same directory."
    manual = """Exits 1 while the fault is there, 0 once it is mended, 2 where it can't be told. Needs only what the command needs.
`storage/` must lie beside this script; it is what the interrupted save left, so that only a mended recovery changes the answer."""

    def __init__(self, command: CommandSettings) -> None:
        self.command = command
        first, *others = command.argv
        scripts = [word for word in command.argv if word.endswith(".py")]
        self.name = os.path.basename(scripts[0]) if scripts else " ".join(command.argv[:2])
        self.line = f"command: {' '.join(command.argv)}"
        words = [word if word == OUT else shlex.quote(word) for word in (os.path.basename(first), *others)]
        self.command_line = (Excerpt("The command; `{out}` is an empty directory at first", " ".join(words), "sh"),)

    def case(
        self, violation: Violation, events: Sequence[j.AnyEvent], place: tuple[str, str, str], scripts: dict[str, str]
    ) -> dict[str, Any]:
        command = self.command
        started = _started(events, attempt_shown(violation))
        seen = [event for event in events if isinstance(event, j.CheckpointsSeen) and event.attempt < started.attempt]
        compared = [event for event in events if isinstance(event, j.ResultCompared)]
        compares = violation.invariant == "result-equal" and bool(compared)
        if violation.invariant == BARE and not command.resumed:
            raise Impossible("the command doesn't tell which step it resumes from (--resumed)")
        words = command.words(OUT, sum(started.ranks), resuming=started.intent == "resume")
        python = os.path.basename(words[0]).startswith("python")
        return {
            "argv": ["{python}" if python else words[0], *words[1:]],
            "scripts": scripts,
            "required": _required(violation),
            "must_speak": violation.invariant == "clear-failure",
            "must_end": violation.invariant == "progress",
            "resumed": command.resumed or "",
            "incomplete": list(seen[-1].partial) if seen and violation.invariant == "complete-only" else [],
            "result": compared[-1].expected if compares else None,
            "result_file": command.result or "",
            "result_command": command.result_command or "",
            "tolerance": command.tolerance,
        }


def attempt_shown(violation: Violation) -> int:
    """The number of the attempt that finds the storage on which the violation shows: what is audited is found by the next one."""
    return violation.attempt + (violation.invariant in (AUDITED, BARE))


def _required(violation: Violation) -> int | None:
    return violation.step if violation.invariant in _REQUIRING else None


def _started(events: Iterable[j.AnyEvent], attempt: int) -> j.AttemptStarted:
    launches = [event for event in events if isinstance(event, j.AttemptStarted)]
    return next((event for event in launches if event.attempt == attempt), launches[-1])


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
