"""A certificate as a person reads it on a terminal: what it says of each failure boundary, then each step with its evidence."""

from __future__ import annotations

from rich.text import Text

from chaosckpt.drill.certificate import Certificate, Outcome, StepResult

COLOURS: dict[Outcome, str] = {
    "survived": "green",
    "failed clearly": "yellow",
    "failed": "red",
    "not tested": "dim",
}
_COLUMN = 14
LINES = 12
"""Lines of evidence that are shown of a step; the JSON has them all."""


def certificate_text(certificate: Certificate) -> Text:
    """The whole certificate, a trailing newline excluded."""
    text = Text()
    text.append(f"Restart certificate of {certificate.scenario}\n", style="bold")
    _row(text, "target", f"{certificate.target}, {certificate.strategy}, ranks {certificate.topology} by node")
    _row(text, "promises", ", ".join(certificate.guarantees) or "nothing")
    text.append("\nFailure boundaries\n", style="bold")
    for boundary in certificate.boundaries:
        text.append(f"  {boundary.outcome:<{_COLUMN}}  ", style=COLOURS[boundary.outcome])
        promised = (
            f" ({boundary.guarantee}{', promised' if boundary.promised else ', not promised'})"
            if boundary.guarantee
            else ""
        )
        text.append(f"{boundary.name}{promised}\n")
    text.append("\nSteps\n", style="bold")
    for step in certificate.steps:
        _step(text, step)
    _versions(text, certificate)
    _storage(text, certificate)
    text.append("Not said here\n", style="bold")
    for limit in certificate.limits:
        text.append(f"  {limit}\n")
    text.append("\n")
    text.append(headline(certificate), style=f"bold {'green' if certificate.held else 'red'}")
    return text


def headline(certificate: Certificate) -> str:
    """The last line: whether what was asked held, in one sentence."""
    asked = [step for step in certificate.steps if step.asked]
    broken = [step for step in asked if not step.held]
    if not broken:
        return f"all {len(asked)} steps that were asked for held"
    first = broken[0]
    count = f"{len(asked) - len(broken)} of {len(asked)} steps that were asked for held"
    return f"step {first.number} ({first.name}) did not hold: {first.outcome}; {count}"


def _step(text: Text, step: StepResult) -> None:
    mark = "held" if step.held else "not asked" if not step.asked else "NOT HELD"
    text.append(f"  {step.number} {step.name}: ")
    text.append(f"{mark}\n", style="green" if step.held else "dim" if not step.asked else "red")
    text.append(f"    {step.sentence}\n")
    for line in step.evidence[:LINES]:
        text.append(f"      {line}\n", style="dim")
    if len(step.evidence) > LINES:
        text.append(f"      and {len(step.evidence) - LINES} lines more, in --json\n", style="dim")
    for check in step.parts:
        if not check.equal:
            whose = "all ranks" if check.rank is None else f"rank {check.rank}"
            text.append(
                f"      {check.part} of {whose}: captured {check.expected or 'nothing'}, restored {check.seen}\n",
                style="red",
            )


def _versions(text: Text, certificate: Certificate) -> None:
    text.append("Versions\n", style="bold")
    for side, versions in certificate.versions.items():
        shown = ", ".join(
            f"{name} {versions[name]}" for name in ("python", "torch", "numpy", "chaosckpt") if name in versions
        )
        text.append(f"  {side}: {shown}\n")
    for line in differences(certificate):
        text.append(f"  {line}\n")
    text.append("\n")


def differences(certificate: Certificate) -> list[str]:
    """What differs between the version sets of saving and of restoring elsewhere, in lines."""
    before, after = certificate.versions.get("saved"), certificate.versions.get("restored elsewhere")
    if before is None or after is None:
        return []
    return [
        f"{name}: saved under {before.get(name, 'none')}, restored under {after.get(name, 'none')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _storage(text: Text, certificate: Certificate) -> None:
    if certificate.file_systems:
        text.append("Storage\n", style="bold")
        for system in certificate.file_systems:
            text.append(
                f"  {system.tier}: {system.kind} on {system.device} ({system.mount_options}); {system.documented}\n"
            )
        text.append("\n")


def _row(text: Text, name: str, value: str) -> None:
    text.append(f"  {name:<{_COLUMN}}  {value}\n")
