"""A certificate as one self-contained HTML page: no script, no font, nothing that a network would have to bring."""

from __future__ import annotations

from jinja2 import Environment, StrictUndefined

from chaosckpt.drill.certificate import Certificate
from chaosckpt.drill.text import differences, headline

_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Restart certificate of {{ c.scenario }}</title>
<style>
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
code, li { overflow-wrap: anywhere; }
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
<table>
<tr><th>target</th><td>{{ c.target }}</td></tr>
<tr><th>job</th><td>{{ c.strategy }}, ranks {{ c.topology }} by node</td></tr>
<tr><th>promises</th><td>{{ c.guarantees | join(", ") or "nothing" }}</td></tr>
<tr><th>saved and restored</th><td>step {{ c.known_step }}; interrupted: the save of step {{ c.later_step }}
({{ "at stage boundaries" if c.gate == "none" else "at exact storage operations" }})</td></tr>
</table>
<h2>Failure boundaries</h2>
<table>
<tr><th>boundary</th><th>outcome</th><th>promise</th><th>what is known</th></tr>
{% for b in c.boundaries %}<tr>
<td>{{ b.name }}</td><td class="{{ b.outcome | replace(' ', '-') }}">{{ b.outcome }}</td>
<td>{% if b.guarantee %}{{ b.guarantee }}{{ "" if b.promised else " (not promised)" }}{% endif %}</td><td>{{ b.sentence }}</td>
</tr>
{% endfor %}</table>
<h2>Steps</h2>
{% for s in c.steps %}<h3>{{ s.number }} {{ s.name }}:
<span class="{{ 'held' if s.held else 'not-tested' if not s.asked else 'broken' }}">{{
"held" if s.held else "not asked for" if not s.asked else "did not hold" }}</span></h3>
<p>{{ s.sentence }}</p>
{% if s.parts %}<table>
<tr><th>part</th><th>of</th><th>captured</th><th>restored</th><th></th></tr>
{% for p in s.parts %}<tr>
<td>{{ p.part }}</td><td>{{ "all ranks" if p.rank is none else "rank %d" % p.rank }}</td>
<td><code>{{ p.expected or "-" }}</code></td><td><code>{{ p.seen }}</code></td>
<td class="{{ 'held' if p.equal else 'broken' }}">{{ p.note or ("equal" if p.equal else "differs") }}</td>
</tr>
{% endfor %}</table>
{% endif %}{% if s.evidence %}<details><summary>Evidence</summary><ul>
{% for line in s.evidence %}<li>{{ line }}</li>
{% endfor %}</ul></details>
{% endif %}{% endfor %}
{% if c.trajectory %}<h2>Trajectory after the restart</h2>
<table>
<tr><th>step</th><th>loss</th><th>golden</th></tr>
{% for step in c.trajectory.steps %}<tr>
<td>{{ step }}</td><td>{{ c.trajectory.losses[loop.index0] }}</td><td>{{ c.trajectory.golden[loop.index0] }}</td>
</tr>
{% endfor %}</table>
<p>Bit for bit: {{ "yes" if c.trajectory.bitwise else "no" }}; largest difference {{ c.trajectory.largest_difference }},
tolerance {{ c.trajectory.tolerance }}.</p>
{% endif %}{% if c.file_systems %}<h2>Storage</h2>
<table>
<tr><th>tier</th><th>file system</th><th>mount options</th><th>what is documented of it</th></tr>
{% for f in c.file_systems %}<tr><td>{{ f.tier }}</td><td>{{ f.kind }} on {{ f.device }}</td><td><code>{{ f.mount_options }}</code></td>
<td>{{ f.documented }}{% if f.source %} ({{ f.source }}){% endif %}</td></tr>
{% endfor %}</table>
{% endif %}<h2>Versions</h2>
{% for line in differences %}<p>{{ line }}</p>
{% endfor %}{% for side, versions in c.versions.items() %}<details><summary>{{ side }}: python {{ versions.python }}, torch {{
versions.get("torch", "none") }}</summary>
<p><code>{% for name, version in versions.items() %}{{ name }} {{ version }}{{ "" if loop.last else ", " }}{% endfor %}</code></p>
</details>
{% endfor %}<h2>Processes</h2>
<table>
<tr><th>allocation</th><th>rank</th><th>process</th><th>interpreter</th><th>environment</th><th>temporary directory</th></tr>
{% for p in c.processes %}<tr><td>{{ p.allocation }}</td><td>{{ p.rank }}</td><td>{{ p.pid }}</td>
<td><code>{{ p.executable }}</code></td>
<td>{{ p.environment | join(", ") if p.allocation != "saved" else "%d variables" % (p.environment | length) }}</td>
<td><code>{{ p.temporary }}</code></td></tr>
{% endfor %}</table>
<h2>Not said here</h2>
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
