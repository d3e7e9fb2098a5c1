"""The map in docs/ARCHITECTURE.md, made from the modules' first sentences: `python -m tests.architecture` writes it anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "chaosckpt"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
BEGIN, END = "<!-- BEGIN map: made by `make map` -->", "<!-- END map -->"
LAYERS = "cli campaign report strategies engine oracle plugins crashstates faults targets workload model errors".split()


def modules() -> list[Path]:
    """Every module of the package that has content."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path.read_bytes().strip())


def first_sentence(path: Path) -> str:
    """What a module knows: the first sentence of its docstring, without the full stop."""
    paragraph = (ast.get_docstring(ast.parse(path.read_bytes())) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".")


def render() -> str:
    """The map: packages in the order of their layers, from the top, and what each module knows."""
    lines = []
    for layer in [*LAYERS, *sorted(_layers() - set(LAYERS))]:
        lines += [f"### {layer}", "", *_entries(layer), ""]
    return "\n".join(lines).rstrip()


def _layers() -> set[str]:
    return {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules() if path.parent != PACKAGE} | {
        path.stem for path in modules() if path.parent == PACKAGE and path.stem != "__init__"
    }


def _entries(layer: str) -> Iterator[str]:
    for path in modules():
        relative = path.relative_to(PACKAGE)
        if relative.parts[0].removesuffix(".py") == layer:
            yield f"- `{relative}`: {first_sentence(path)}"


def on_page() -> str:
    """The map that stands on the page."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def write() -> None:
    """Put the map into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{render()}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    write()
