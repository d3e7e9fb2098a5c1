"""What a person reads at the end of a campaign, or when a run is judged again: the first finding leads, the counts follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from chaosckpt.model.census import GoldenRun, Point, Stage
from chaosckpt.model.phrasing import plural
from chaosckpt.model.summary import CampaignSummary, Coverage, FindingSummary, Replay, Reproduction
from chaosckpt.model.verdict import Verdict

STAGES = get_args(Stage)
"""In the order in which they happen."""
_COLUMN = 14
_LAUNCHES = {
    "fork": "warm (ranks are forks of a warm interpreter)",
    "exec": "cold (each launch starts new interpreters)",
}


_COLD: dict[bool | None, str] = {
    True: "; confirmed once by the command's own launcher, cold",
    False: "; NOT shown when the command's own launcher started the ranks, cold",
}


def summary_text(summary: CampaignSummary) -> Text:
    """The result of a campaign, a trailing newline excluded."""
    text = Text()
    if summary.findings:
        _first(text, summary.findings[0])
        _others(text, summary.findings[1:])
    _counts(text, summary)
    _remarks(text, summary)
    text.append(headline(summary), style="bold " + ("red" if summary.exit_code else "green"))
    return text


def headline(summary: CampaignSummary) -> str:
    """The last line: what the campaign found, in one sentence."""
    trials = plural(summary.trials, "trial")
    if summary.findings:
        return f"{plural(len(summary.findings), 'finding')} in {trials}; details: {summary.run}/findings"
    if summary.violations:
        return (
            f"{plural(summary.violations, 'violation')} in {trials}, not grouped into findings yet; run: {summary.run}"
        )
    if summary.trials == 0:
        return f"no trial was run, so nothing is known; run: {summary.run}"
    if summary.exit_code == 3:
        return (
            f"no violation in {trials}, but {summary.inconclusive} inconclusive: not a clean result; run: {summary.run}"
        )
    ending = " before the interruption" if summary.interrupted else ""
    return f"no violation in {trials}{ending}; run: {summary.run}"


def percent(part: int, whole: int) -> str:
    """A share as whole percents; never 100 % for less than all, never 0 % for more than none."""
    if whole == 0:
        return "-"
    if 0 < part < whole:
        return f"{min(99, max(1, round(100 * part / whole)))} %"
    return f"{100 * part // whole} %"


def _first(text: Text, finding: FindingSummary) -> None:
    text.append(f"VIOLATION  {finding.invariant}\n", style="bold red")
    text.append(f"\n  {finding.sentence}\n\n")
    _row(text, "cause", finding.faults[0] if finding.faults else "no fault: a plain restart is enough")
    for fault in finding.faults[1:]:
        _row(text, "then", fault)
    for face in finding.also:
        _row(text, "also", face)
    _row(text, "root cause", finding.root_cause)
    _row(text, "seen in", _seen(finding))
    _row(text, "reproduce", finding.command, style="bold")
    text.append("\n")


def _seen(finding: FindingSummary) -> str:
    named = f", first in {finding.trials[0]}" if finding.trials else ""
    rate = _replayed(finding, f"reproduced in {finding.reproduced} replays")
    return f"{plural(finding.count, 'trial')}{named}; {rate}{_COLD.get(finding.confirmed_cold, '')}"


def _replayed(finding: FindingSummary, rate: str) -> str:
    if not finding.interrupted:
        return rate
    return "not shrunk and replayed to the end, since the campaign was interrupted; --resume does it anew"


def _others(text: Text, findings: tuple[FindingSummary, ...]) -> None:
    if not findings:
        return
    text.append(f"Further findings ({len(findings)})\n", style="bold")
    for finding in findings:
        faults = ", then ".join(finding.faults) or "no fault"
        rate = _replayed(finding, f"reproduced {finding.reproduced}")
        text.append(f"  {finding.id}  {finding.root_cause}  ×{finding.count}  {rate}  cause: {faults}\n")
        for face in finding.also:
            text.append(f"    also {face}\n")
    text.append("\n")


def _counts(text: Text, summary: CampaignSummary) -> None:
    share = percent(summary.inconclusive, summary.trials)
    _row(
        text,
        "trials",
        f"{summary.trials}: {summary.passed} passed, {plural(summary.violations, 'violation')}, "
        f"{summary.inconclusive} inconclusive ({share}); {summary.rate_per_minute:.0f} a minute",
    )
    _row(
        text,
        "drawn",
        f"{plural(summary.singles, 'single fault')}, {plural(summary.multis, 'schedule')} of several; "
        f"{summary.recovery_faults} hit a recovery",
    )
    _row(text, "by attempts", _tally(summary.trials_by_attempts))
    _row(text, "by faults", _tally(summary.trials_by_faults))
    _row(text, "by topologies", _tally(summary.trials_by_topologies))
    _row(text, "launch", _launch(summary))
    if summary.launcher:
        _row(text, "observed", _observed(summary))
    _coverage(text, summary.coverage)
    if summary.prefixes:
        _row(text, "recoverable", _recoverable(summary))
    text.append("\n")


def _launch(summary: CampaignSummary) -> str:
    how = _LAUNCHES.get(summary.launch, summary.launch)
    return f"{how}, as {summary.launcher} starts them" if summary.launcher and summary.launch == "fork" else how


def _observed(summary: CampaignSummary) -> str:
    """What an observer has shown of a command, and what that leaves out."""
    if "all" in summary.unjudged:
        return f"nothing: {summary.unjudged['all']}"
    restarts = summary.restarts
    parts = f" (others differ in {', '.join(restarts.parts)})" if restarts.parts else ""
    left = f"; not compared: {', '.join(summary.unjudged)}" if summary.unjudged else ""
    same = restarts.tried - restarts.differing
    return f"{same} of {plural(restarts.tried, 'plain restart')} went on as the uninterrupted run{parts}{left}"


def _recoverable(summary: CampaignSummary) -> str:
    """What recovery found on the storage as it was after each operation of a fault-free run."""
    tried = f"recovery was tried after each of {plural(summary.prefixes, 'operation')} of a fault-free run"
    if not summary.recovery_gaps:
        return f"{tried}: an acceptable checkpoint was left each time"
    return f"{tried}. After {len(summary.recovery_gaps)} of them no acceptable checkpoint was left, first {summary.recovery_gaps[0]}"


def _coverage(text: Text, coverage: Coverage) -> None:
    _row(
        text,
        "coverage",
        f"{coverage.hit} of {coverage.total} census points hit ({percent(coverage.hit, coverage.total)})",
    )
    known = [stage for stage in STAGES if stage in coverage.by_stage]
    stages = known + sorted(set(coverage.by_stage) - set(known))
    if stages:
        parts = (f"{stage} {coverage.by_stage[stage].hit}/{coverage.by_stage[stage].total}" for stage in stages)
        _row(text, "", ", ".join(parts))


def _tally(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{key}: {counts[key]}" for key in sorted(counts, key=lambda key: (len(key), key))) or "-"


MOST_REFUSED = 10


def _remarks(text: Text, summary: CampaignSummary) -> None:
    """What limits the meaning of the counts."""
    remarks = list(summary.remarks)
    if summary.gate == "none":
        remarks.append("gate = none: faults hit stage boundaries only; `chaosckpt doctor` says why")
    if summary.interrupted:
        remarks.append(f"interrupted; continue with: chaosckpt fuzz --resume {summary.run}")
    if summary.harness_troubles:
        remarks.append(
            f"the harness itself failed in {plural(summary.harness_troubles, 'trial')}; log: {summary.run}/campaign.log"
        )
    ordered = sorted(summary.inconclusive_reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    remarks += [f"inconclusive ×{count}: {reason}" for reason, count in ordered[:5]]
    remarks += [f"in {plural(count, 'trial')} {gap}" for gap, count in summary.gaps.items()]
    remarks += [f"in {plural(count, 'trial')} {what}" for what, count in list(summary.refused.items())[:MOST_REFUSED]]
    if len(summary.refused) > MOST_REFUSED:
        remarks.append(
            f"{len(summary.refused) - MOST_REFUSED} more refusals: chaosckpt fuzz --json, or {summary.run}/summary.json"
        )
    for remark in remarks:
        text.append(f"  {remark}\n", style="yellow")
    if remarks:
        text.append("\n")


def _row(text: Text, name: str, value: str, style: str = "") -> None:
    text.append(f"  {name:<{_COLUMN}}", style="dim")
    text.append(f"{value}\n", style=style)


def replay_line(replay: Replay, times: int) -> str:
    """One line for one replay."""
    result = "the same violation" if replay.same and replay.outcome == "violation" else replay.outcome
    return f"replay {replay.number}/{times}: {result}" + (
        f" ({replay.sentence})" if replay.sentence and not replay.same else ""
    )


def reproduction_text(result: Reproduction) -> Text:
    """The result of `reproduce`: the sentence, the faults, what differs, and how many replays showed it."""
    text = Text()
    sentence = result.expected or next((replay.sentence for replay in result.replays if replay.sentence), "")
    if sentence:
        text.append(f"  {sentence}\n\n")
    for fault in result.faults:
        _row(text, "fault", fault)
    for difference in result.differences:
        _row(text, "differs", difference, style="yellow")
    others: dict[str, int] = {}
    for replay in result.replays:
        if not replay.same:
            others[replay.outcome] = others.get(replay.outcome, 0) + 1
    if others:
        _row(text, "otherwise", _tally(others))
    style = "bold red" if result.exit_code == 1 else "bold"
    first = result.replays[0].outcome if result.replays else "violation"
    what = "" if result.expected or first == "violation" else f" (outcome: {first})"
    text.append(f"trial {result.trial}: reproduced {result.reproduced}/{len(result.replays)}{what}", style=style)
    return text


LISTED = 20
"""Violations listed one by one, at most; the counts by invariant follow anyway."""


def judgement_text(verdicts: Mapping[str, Verdict]) -> Text:
    """All verdicts of a run, by the trials' names."""
    text = Text()
    broken = [(trial, verdict.primary) for trial, verdict in verdicts.items() if verdict.primary is not None]
    for trial, violation in broken[:LISTED]:
        text.append(f"{trial}  {violation.invariant}: ", style="bold red").append(f"{violation.sentence}\n")
    if len(broken) > LISTED:
        text.append(f"… and {len(broken) - LISTED} more\n")
    for invariant, count in sorted(Counter(violation.invariant for _, violation in broken).items()):
        text.append(f"  {invariant}: {plural(count, 'trial')}\n")
    reasons = Counter(verdict.reason for verdict in verdicts.values() if verdict.outcome == "inconclusive")
    for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])):
        text.append(f"  inconclusive ×{count}: {reason}\n", style="yellow")
    outcomes = Counter(verdict.outcome for verdict in verdicts.values())
    return text.append(
        f"{plural(len(verdicts), 'trial')} judged: {outcomes['pass']} passed, {plural(outcomes['violation'], 'violation')}, "
        f"{outcomes['inconclusive']} inconclusive",
        style="bold",
    )


def census_table(run: GoldenRun) -> RenderableType:
    """One golden run: a title, the number of operations by stage, and a line for each run of like operations."""
    start = "from step 0" if run.resumed_from is None else f"resumed from step {run.resumed_from}"
    ranks = plural(run.topology.world_size, "rank")
    title = Text(f"{run.topology} ({ranks}), {start}: {plural(len(run.points), 'operation')}", style="bold")
    counts = {stage: sum(point.label.stage == stage for point in run.points) for stage in STAGES}
    stages = Text(", ".join(f"{stage} {count}" for stage, count in counts.items() if count), style="dim")
    return Group(title, stages, _points(run), Text(""))


def _points(run: GoldenRun) -> Table:
    """Neighbouring operations of one kind on one file share a line: 28 writes of a shard are `×28`."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("stage", "rank", "operation", "path", "times", "bytes"):
        table.add_column(name, justify="right" if name in ("rank", "times", "bytes") else "left", no_wrap=True)
    points = sorted(run.points, key=lambda point: point.address.rank)
    for (label, rank, op, path), group in groupby(points, key=_likeness):
        members = list(group)
        lengths = [member.length for member in members if member.length is not None]
        table.add_row(
            label,
            str(rank),
            op,
            path,
            f"×{len(members)}" if len(members) > 1 else "",
            str(sum(lengths)) if lengths else "",
        )
    return table


def _likeness(point: Point) -> tuple[str, int, str, str]:
    return str(point.label), point.address.rank, point.address.op, point.address.path
