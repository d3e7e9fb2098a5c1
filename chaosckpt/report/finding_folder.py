"""The two pages of a finding's folder: README.md for a person, and ISSUE.md as a draft of a report to the target's authors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from chaosckpt.model.finding import Finding
from chaosckpt.model.scenario import Scenario

_PATH = re.compile(r"(?:(?<=[\s'\"(\[{,=<`])|^)/(?:[\w.@+~*#%-]+/)*[\w.@+~*#%-]+", re.MULTILINE)
"""Absolute POSIX paths in running text: not the `/` of `tier:relative/path`, of a fraction or of a URL."""


def write(folder: Path, finding: Finding, scenario: Scenario, environment: Mapping[str, str], command: str) -> None:
    """Write README.md and ISSUE.md into a finding's folder. `environment` are versions by name, `command` reproduces it."""
    (folder / "README.md").write_text(readme(finding, scenario, environment, command), encoding="utf-8")
    (folder / "ISSUE.md").write_text(issue(finding, scenario, environment), encoding="utf-8")


def readme(finding: Finding, scenario: Scenario, environment: Mapping[str, str], command: str) -> str:
    """What happened, how to see it again, and what lies in the folder."""
    violation = finding.violation
    lines = [f"# {violation.invariant}: {finding.id}", "", violation.sentence, ""]
    lines += _faults(finding.faults)
    lines += ["## See it again", "", f"    {command}", "", _rate(finding), ""]
    lines += ["## Expected and seen", "", *_details(finding), ""]
    lines += ["## Where it was found", ""]
    lines += [f"- scenario: {scenario.name}" + (f" ({scenario.description})" if scenario.description else "")]
    lines += [f"- target: {scenario.target.use}{_options(scenario)}"]
    lines += [
        f"- first in trial {finding.trial}; {finding.count} trials of the campaign have this root cause: {finding.cause}"
    ]
    lines += [f"- shrunk with {finding.shrink_trials} trials"]
    lines += [f"- {name}: {value}" for name, value in sorted(environment.items())]
    lines += ["", "## In this folder", "", *_contents(scenario), ""]
    return "\n".join(lines)


def issue(finding: Finding, scenario: Scenario, environment: Mapping[str, str]) -> str:
    """A draft to be read, corrected and sent by a person; it holds no path of this machine."""
    violation = finding.violation
    lines = [f"# {_title(finding)}", "", "*Draft made by chaosckpt. Please read and correct it before it is sent.*", ""]
    lines += ["### What happens", "", violation.sentence, ""]
    lines += _faults(finding.faults, level="###")
    lines += ["### Expected and seen", "", *_details(finding), ""]
    lines += ["### How to reproduce", "", "With the folder of this finding:", "", "    pip install chaosckpt"]
    lines += [f"    chaosckpt reproduce {finding.id}", "", _rate(finding), ""]
    lines += [
        "### Environment",
        "",
        f"- target: {scenario.target.use}{_options(scenario)}",
        f"- workload: {scenario.workload.strategy}",
    ]
    lines += [f"- {name}: {value}" for name, value in sorted(environment.items())]
    return without_local_paths("\n".join([*lines, ""]))


def without_local_paths(text: str) -> str:
    """The text with every absolute path cut down to its last part, marked by an ellipsis."""
    return _PATH.sub(lambda match: ".../" + match.group().rpartition("/")[2], text)


def reproduce_command(folder: str) -> str:
    """The command that replays a finding's folder, quoted for a shell."""
    return f"chaosckpt reproduce {shlex.quote(folder)}"


def _title(finding: Finding) -> str:
    cause = finding.cause
    where = " ".join(part for part in (cause.operation, cause.file_pattern) if part)
    stage = f" during {cause.stage}" if cause.stage else ""
    return f"{finding.violation.invariant} violated by a fault at {where or 'a restart'}{stage}"


def _faults(faults: Sequence[str], level: str = "##") -> list[str]:
    lines = [f"{level} What was done", ""]
    lines += [f"{number}. {fault}" for number, fault in enumerate(faults, 1)] or [
        "Nothing: it happens without a fault."
    ]
    return [*lines, f"{len(faults) + 1 if faults else 1}. The job was started again, and its recovery was judged.", ""]


def _rate(finding: Finding) -> str:
    if finding.reproduced == finding.replays:
        return f"It showed again in {finding.reproduced} of {finding.replays} replays."
    return f"It is flaky: {finding.reproduced} of {finding.replays} replays showed it again."


def _details(finding: Finding) -> list[str]:
    violation = finding.violation
    facts: list[tuple[str, object]] = [
        ("expected", violation.expected),
        ("seen", violation.seen),
        ("error", violation.error_type),
        ("rank", violation.rank),
        ("step", violation.step),
        ("file", violation.path),
    ]
    return [f"- {name}: {value}" for name, value in facts if value not in (None, "")] or ["- see the sentence above"]


def _options(scenario: Scenario) -> str:
    options = msgspec.to_builtins(scenario.target.options)
    return " with " + ", ".join(f"{name} = {value!r}" for name, value in sorted(options.items())) if options else ""


FILES = {
    "scenario.toml": "what was tested",
    "finding.json": "the finding as a value: cause, violation, both schedules, versions",
    "schedule.json": "the faults as they were drawn",
    "shrunk.json": "the faults that are enough; `reproduce` replays these",
    "census.json": "the operations of the fault-free runs that the faults are addressed by",
    "journals/": "what happened, event by event, in the first trial and in the shrunk one",
    "ISSUE.md": "a draft of a report, with the paths of this machine taken out",
}
"""What a finding's folder holds, by name. The campaign's store writes them."""


def _contents(scenario: Scenario) -> list[str]:
    file, _, name = scenario.target.use.rpartition(":")
    own = {file.rpartition("/")[2]: f"the target {name}, as it was"} if file else {}
    return [f"- `{entry}`: {what}" for entry, what in {**FILES, **own}.items()]
