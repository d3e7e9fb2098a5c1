"""The two pages of a finding's folder: README.md for who ran the campaign, ISSUE.md for the authors of the code under test.

ISSUE.md stands alone: whoever reads it has never heard of the harness. It says what was run, what happened launch by launch, which
files a crash left, and what recovery did with them; it holds no path of this machine.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from chaosckpt.model.finding import Evidence, Finding, StoredFile
from chaosckpt.model.phrasing import plural
from chaosckpt.model.scenario import Scenario
from chaosckpt.report.finding_title import capital, expected, title
from chaosckpt.report.reproduction import NAME
from chaosckpt.report.subject_terms import SubjectTerms, terms_of

_PATH = re.compile(r"(?:(?<=[\s'\"(\[{,=<`])|^)/(?:[\w.@+~*#%-]+/)*[\w.@+~*#%-]+", re.MULTILINE)
"""Absolute POSIX paths in running text: not the `/` of `tier:relative/path`, of a fraction or of a URL."""
MOST_FILES = 40
"""Files listed in ISSUE.md."""
FILES = {
    "scenario.toml": "what was tested",
    "finding.json": "the finding as a value: cause, violation, both schedules, versions",
    "schedule.json": "the faults as they were drawn",
    "shrunk.json": "the faults that are enough; `chaosckpt reproduce` replays these",
    "census.json": "the operations of the fault-free runs, by which the faults are addressed",
    "journals/": "what happened, event by event, in the first trial and in the shrunk one",
    "ISSUE.md": "a draft of a report to the authors of the code under test, without the paths of this machine",
}
"""What a finding's folder holds in any case, by name. The campaign's store writes them."""


def write(
    folder: Path,
    finding: Finding,
    scenario: Scenario,
    environment: Mapping[str, str],
    command: str,
    evidence: Evidence = Evidence(),  # noqa: B008 - a frozen value
) -> None:
    """Write README.md and ISSUE.md into a finding's folder. `environment` are versions by name, `command` reproduces it."""
    (folder / "README.md").write_text(readme(finding, scenario, environment, command, evidence), encoding="utf-8")
    (folder / "ISSUE.md").write_text(issue(finding, scenario, evidence), encoding="utf-8")


def readme(
    finding: Finding,
    scenario: Scenario,
    environment: Mapping[str, str],
    command: str,
    evidence: Evidence = Evidence(),  # noqa: B008 - a frozen value
) -> str:
    """What happened, how to see it again, and what lies in the folder."""
    violation = finding.violation
    lines = [f"# {violation.invariant}: {finding.id}", "", violation.sentence, "", "## The faults", ""]
    lines += _faults(finding)
    lines += ["", "## Reproduce it", "", "Replay the faults, and judge the replays:", "", f"    {command}", ""]
    lines += [_rate(finding), ""]
    lines += _script(evidence)
    lines += ["## Expected and seen", "", *_details(finding), "", "## Where it was found", ""]
    lines += [f"- scenario: {scenario.name}" + (f" ({scenario.description})" if scenario.description else "")]
    lines += [f"- {terms_of(scenario).line}"]
    trials = "1 trial of this campaign has" if finding.count == 1 else f"{finding.count} trials of this campaign have"
    lines += [f"- first trial: {finding.trial}; {trials} this root cause: {finding.cause}"]
    lines += [f"- shrunk with {plural(finding.shrink_trials, 'trial')}"]
    lines += [f"- {_NAMED.get(name, name)}: {value}" for name, value in sorted(environment.items())]
    lines += ["", "## In this folder", "", *_contents(scenario, evidence), ""]
    return "\n".join(lines)


def issue(finding: Finding, scenario: Scenario, evidence: Evidence = Evidence()) -> str:  # noqa: B008 - a frozen value
    """A draft to be read, corrected and sent by a person; it holds no path of this machine."""
    terms = terms_of(scenario)
    lines = [f"# {title(finding, scenario)}", ""]
    lines += ["*A draft made by a test tool. Please read and correct it before you send it.*", ""]
    lines += ["### What was run", "", terms.job, ""]
    for excerpt in evidence.code:
        lines += [f"{excerpt.title}:", "", f"```{excerpt.language}", excerpt.text, "```", ""]
    lines += ["### What happened", ""]
    lines += [f"{number}. {entry}" for number, entry in enumerate(evidence.story, 1)] or _faults(finding, exact=False)
    lines += ["", "### Expected", "", expected(finding, scenario), "", "### Seen", ""]
    lines += [
        f"{capital(finding.violation.seen or finding.violation.error_type or 'see above')}.".replace("..", "."),
        "",
    ]
    if evidence.traceback:
        lines += ["```", *evidence.traceback.rstrip().splitlines(), "```", ""]
    lines += _listing(evidence)
    lines += ["### Reproduce", ""]
    lines += _for_authors(finding, terms, evidence)
    if evidence.versions:
        lines += ["### Versions", "", "```", *evidence.versions, "```", ""]
    return without_local_paths("\n".join(lines))


def without_local_paths(text: str) -> str:
    """The text with every absolute path cut down to its last part, marked by an ellipsis."""
    return _PATH.sub(lambda match: ".../" + match.group().rpartition("/")[2], text)


def reproduce_command(folder: str) -> str:
    """The command that replays a finding's folder, quoted for a shell."""
    return f"chaosckpt reproduce {shlex.quote(folder)}"


_NAMED = {"cpu_flags": "digest of the processor's flags"}


def _faults(finding: Finding, *, exact: bool = True) -> list[str]:
    """Each fault as a person tells it, with its exact addresses beside it, and what happens then."""
    lines = []
    for number, fault in enumerate(finding.faults, 1):
        addresses = finding.addresses[number - 1] if number <= len(finding.addresses) and exact else ()
        at = f" (exact address: {', '.join(f'`{address}`' for address in addresses)})" if addresses else ""
        lines.append(f"{number}. {capital(fault)}{at}")
    lines = lines or ["1. No fault is needed: stopping and restarting the job shows it."]
    return [*lines, f"{len(lines) + 1}. The job was restarted, and its recovery was judged."]


def _script(evidence: Evidence) -> list[str]:
    if evidence.no_script:
        return [f"There is no {NAME}: {evidence.no_script}.", ""]
    if not evidence.claim:
        return []
    return [
        "Show the fault without injecting one (exit status 1 while it is there, 0 once it is mended):",
        "",
        f"    python {NAME}",
        "",
        f"{evidence.claim}. To try a mended file, name it: `python {NAME} FILE.py`. The stored files are fixed: whether a mended "
        "save leaves better ones, the replay above tells.",
        "",
    ]


def _rate(finding: Finding) -> str:
    shown = f"{finding.reproduced} of {plural(finding.replays, 'replay')} showed it again."
    if finding.interrupted:
        return (
            "The campaign was interrupted before this finding was shrunk and replayed to the end; `chaosckpt fuzz --resume RUN` "
            f"does it anew. So far {shown}"
        )
    flaky = "" if finding.reproduced == finding.replays else "It is flaky: "
    return flaky + shown + _COLD.get(finding.confirmed_cold, "")


_COLD: dict[bool | None, str] = {
    True: " So did a run in which the command's own launcher started the ranks.",
    False: " A run in which the command's own launcher started the ranks did not show it: it may be due to how chaosckpt starts them, "
    "as forks of one interpreter.",
}


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


def _listing(evidence: Evidence) -> list[str]:
    files = [entry for entry in evidence.storage.files if entry.kind != "directory"]
    if not files:
        return []
    lines = ["### Files at the crash", "", "| file | bytes | written by |", "|---|---:|---|"]
    lines += [_row(entry) for entry in files[:MOST_FILES]]
    more = len(files) - MOST_FILES
    return [*lines, *([f"| and {plural(more, 'more file')} | | |"] if more > 0 else []), ""]


def _row(entry: StoredFile) -> str:
    place, _, relative = entry.path.partition("/")
    name = f"{relative} (node-local, node {place.removeprefix('local-')})" if place.startswith("local-") else relative
    size = f"link to {os.path.basename(entry.link)}" if entry.kind == "link" else str(entry.bytes)
    return f"| {name} | {size} | {entry.writer or 'not known'} |"


def _for_authors(finding: Finding, terms: SubjectTerms, evidence: Evidence) -> list[str]:
    if not finding.replays:
        rate = "once; it was not replayed"
    else:
        rate = (
            "every time"
            if finding.reproduced == finding.replays
            else f"{finding.reproduced} of {finding.replays} times"
        )
    if evidence.claim and not evidence.no_script:
        return [
            f"The attached `{NAME}` puts the attached `storage/` in place and runs the plain "
            f"{terms.run}; it exits 1 while the fault is there.{terms.needs}",
            "",
        ]
    return [
        f"The crash was placed by chaosckpt (`pip install chaosckpt`) at the operation named above; it shows {rate}:",
        "",
        f"    chaosckpt reproduce {finding.id}    # with the attached folder of this finding",
        "",
    ]


def _contents(scenario: Scenario, evidence: Evidence) -> list[str]:
    file, _, name = scenario.target.use.rpartition(":")
    own = {file.rpartition("/")[2]: f"the target {name}, as it was"} if file else {}
    for word in terms_of(scenario).command.argv:
        script = os.path.basename(word)
        if any(excerpt.title.startswith(script) for excerpt in evidence.code if script.endswith(".py")):
            own[script] = "the command's script, as it was"
    if evidence.claim and not evidence.no_script:
        own |= {NAME: "shows the fault by a plain recovery", "storage/": "the stored files as the crash left them"}
    if evidence.modules:
        own["code/"] = "the code under test with the local modules that it imports, as they were"
    return [f"- `{entry}`: {what}" for entry, what in {**FILES, **own}.items()]
