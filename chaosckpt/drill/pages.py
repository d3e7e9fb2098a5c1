"""A certificate for a person: on a terminal, and as one self-contained page of HTML."""

from __future__ import annotations

from jinja2 import Environment, StrictUndefined
from rich.text import Text

from chaosckpt.drill.certificate import Certificate, Outcome, StepResult
from chaosckpt.model.phrasing import plural

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
    if (came := certificate.provenance) is not None:
        _row(text, "drilled", f"{came.date} on {came.host}")
        _row(text, "command", came.command)
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
    text.append("Not covered\n", style="bold")
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
        return f"all {len(asked)} requested steps held"
    first = broken[0]
    count = f"{len(asked) - len(broken)} of {plural(len(asked), 'requested step')} held"
    return f"step {first.number} ({first.name}) did not hold: {first.outcome}; {count}"


def _step(text: Text, step: StepResult) -> None:
    mark = "held" if step.held else "not requested" if not step.asked else "NOT HELD"
    text.append(f"  {step.number} {step.name}: ")
    text.append(f"{mark}\n", style="green" if step.held else "dim" if not step.asked else "red")
    text.append(f"    {step.sentence}\n")
    for line in step.evidence[:LINES]:
        text.append(f"      {line}\n", style="dim")
    if len(step.evidence) > LINES:
        text.append(f"      and {plural(len(step.evidence) - LINES, 'more line')}, in --json\n", style="dim")
    for check in step.parts:
        if not check.equal:
            whose = "all ranks" if check.rank is None else f"rank {check.rank}"
            text.append(
                f"      {check.part} of {whose}: saved {check.expected or 'nothing'}, restored {check.seen}\n",
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


_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Restart certificate of {{ c.scenario }}</title>
<style>
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
h3, p, code, li, td { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.wide td { min-width: 5rem; } .wide td:nth-child(4) { min-width: 14rem; }
.verdict { border: 2px solid; border-radius: .5rem; padding: .75rem 1rem; font-weight: 600; }
.survived, .held { color: #137a3f; } .failed, .broken { color: #c02626; } .failed-clearly { color: #a15c00; }
.not-tested { opacity: .65; }
@media (prefers-color-scheme: dark) { .survived, .held { color: #5ad18f; } .failed, .broken { color: #ff7b72; }
  .failed-clearly { color: #f0b35a; } }
</style>
</head>
<body>
<h1>Restart certificate of {{ c.scenario }}</h1>
<p class="verdict {{ 'held' if c.held else 'broken' }}">{{ headline }}</p>
<div class="wide"><table>
<tr><th>target</th><td>{{ c.target }}</td></tr>
<tr><th>job</th><td>{{ c.strategy }}, ranks {{ c.topology }} by node</td></tr>
<tr><th>promises</th><td>{{ c.guarantees | join(", ") or "nothing" }}</td></tr>
<tr><th>saved and restored</th><td>step {{ c.known_step }}; interrupted: the save of step {{ c.later_step }}
({{ "at stage boundaries" if c.gate == "none" else "at exact storage operations" }})</td></tr>
{% if c.provenance %}<tr><th>drilled</th><td>{{ c.provenance.date }} on {{ c.provenance.host }}</td></tr>
<tr><th>command</th><td><code>{{ c.provenance.command }}</code></td></tr>
{% endif %}</table></div>
<h2>Failure boundaries</h2>
<div class="wide"><table>
<tr><th>boundary</th><th>outcome</th><th>promise</th><th>evidence</th></tr>
{% for b in c.boundaries %}<tr>
<td>{{ b.name }}</td><td class="{{ b.outcome | replace(' ', '-') }}">{{ b.outcome }}</td>
<td>{% if b.guarantee %}{{ b.guarantee }}{{ "" if b.promised else " (not promised)" }}{% endif %}</td><td>{{ b.sentence }}</td>
</tr>
{% endfor %}</table></div>
<h2>Steps</h2>
{% for s in c.steps %}<h3>{{ s.number }} {{ s.name }}:
<span class="{{ 'held' if s.held else 'not-tested' if not s.asked else 'broken' }}">{{
"held" if s.held else "not requested" if not s.asked else "did not hold" }}</span></h3>
<p>{{ s.sentence }}</p>
{% if s.parts %}<div class="wide"><table>
<tr><th>part</th><th>of</th><th>saved</th><th>restored</th><th></th></tr>
{% for p in s.parts %}<tr>
<td>{{ p.part }}</td><td>{{ "all ranks" if p.rank is none else "rank %d" % p.rank }}</td>
<td><code>{{ p.expected or "-" }}</code></td><td><code>{{ p.seen }}</code></td>
<td class="{{ 'held' if p.equal else 'broken' }}">{{ p.note or ("equal" if p.equal else "differs") }}</td>
</tr>
{% endfor %}</table></div>
{% endif %}{% if s.evidence %}<details><summary>Evidence</summary><ul>
{% for line in s.evidence %}<li>{{ line }}</li>
{% endfor %}</ul></details>
{% endif %}{% endfor %}
{% if c.trajectory %}<h2>Trajectory after the restart</h2>
<div class="wide"><table>
<tr><th>step</th><th>loss</th><th>golden</th></tr>
{% for step in c.trajectory.steps %}<tr>
<td>{{ step }}</td><td>{{ c.trajectory.losses[loop.index0] }}</td><td>{{ c.trajectory.golden[loop.index0] }}</td>
</tr>
{% endfor %}</table></div>
<p>Bit for bit: {{ "yes" if c.trajectory.bitwise else "no" }}; largest difference {{ c.trajectory.largest_difference }},
tolerance {{ c.trajectory.tolerance }}.</p>
{% endif %}{% if c.file_systems %}<h2>Storage</h2>
<div class="wide"><table>
<tr><th>tier</th><th>file system</th><th>mount options</th><th>documented behaviour</th></tr>
{% for f in c.file_systems %}<tr><td>{{ f.tier }}</td><td>{{ f.kind }} on {{ f.device }}</td><td><code>{{ f.mount_options }}</code></td>
<td>{{ f.documented }}{% if f.source %} ({{ f.source }}){% endif %}</td></tr>
{% endfor %}</table></div>
{% endif %}<h2>Versions</h2>
{% for line in differences %}<p>{{ line }}</p>
{% endfor %}{% for side, versions in c.versions.items() %}<details><summary>{{ side }}: python {{ versions.python }}, torch {{
versions.get("torch", "none") }}</summary>
<p><code>{% for name, version in versions.items() %}{{ name }} {{ version }}{{ "" if loop.last else ", " }}{% endfor %}</code></p>
</details>
{% endfor %}<h2>Processes</h2>
<div class="wide"><table>
<tr><th>allocation</th><th>rank</th><th>process</th><th>interpreter</th><th>environment</th></tr>
{% for p in c.processes %}<tr><td>{{ p.allocation }}</td><td>{{ p.rank }}</td><td>{{ p.pid }}</td>
<td><code>{{ p.executable }}</code></td>
<td>{{ p.environment | join(", ") if p.allocation != "saved" else "%d variables" % (p.environment | length) }}</td></tr>
{% endfor %}</table></div>
<h2>Not covered</h2>
<ul>
{% for limit in c.limits %}<li>{{ limit }}</li>
{% endfor %}</ul>
</body>
</html>
"""


def certificate_page(certificate: Certificate) -> str:
    """The whole page. What it shows of the outside (messages, paths, names) is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string(_TEMPLATE)
    return template.render(c=certificate, headline=headline(certificate), differences=differences(certificate))
