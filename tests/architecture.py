"""The map in docs/ARCHITECTURE.md, one row a package, from their docstrings: `python -m tests.architecture` writes it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "chaosckpt"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
HEAD = "| package | what it knows |\n|---|---|\n"
ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+) \|$", re.MULTILINE)


def modules() -> list[Path]:
    """Every module of the package that has content."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path.read_bytes().strip())


def packages() -> dict[str, str]:
    """Every package below `chaosckpt`, by its dotted name, with the first sentence of its docstring."""
    return {
        ".".join(path.parent.relative_to(PACKAGE).parts): first_sentence(path)
        for path in sorted(PACKAGE.rglob("__init__.py"))
        if path.parent != PACKAGE
    }


def first_sentence(path: Path) -> str:
    """What a package knows: the first sentence of its docstring, without the full stop."""
    paragraph = (ast.get_docstring(ast.parse(path.read_bytes())) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".")


def on_page() -> dict[str, str]:
    """The rows that stand on the page: package and sentence."""
    return dict(ROW.findall(PAGE.read_text(encoding="utf-8").partition(HEAD)[2]))


def write() -> None:
    """Write the table again. Rows keep their order, which is that of the layers; new packages follow at the end."""
    found = packages()
    order = [name for name in on_page() if name in found]
    order += [name for name in found if name not in order]
    rows = "".join(f"| `{name}` | {found[name]} |\n" for name in order)
    before, head, rest = PAGE.read_text(encoding="utf-8").partition(HEAD)
    after = rest.partition("\n\n")[2]
    PAGE.write_text(f"{before}{head}{rows}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
