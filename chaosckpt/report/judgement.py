"""What a person reads of a run that was judged again: the violations by their sentences, then the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.text import Text

from chaosckpt.model.phrasing import plural
from chaosckpt.model.verdict import Verdict

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
