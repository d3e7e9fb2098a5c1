"""The code that a subject brings along: its local modules and installed packages, found without running any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.engine.wire import versions
from chaosckpt.engine.wire.sources import sources


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A target's file beside the library that it tests, none of which could be run."""
    for name, text in {
        "its_target.py": "import os, torch, msgspec\nfrom my_library import saver\ndef later():\n    import my_helper\nraise 1\n",
        "my_helper.py": "import its_target\n",
        "unused.py": "",
        "my_library/__init__.py": "from . import constants\n",
        "my_library/saver.py": "from .parts.writer import write\nfrom my_library.reader import *\n",
        "my_library/reader.py": "this is no Python\n",
        "my_library/constants.py": "",
        "my_library/unused.py": "",
        "my_library/parts/writer.py": "from .. import constants\nfrom ..dynamic import missing\n",
        "my_library/plugin.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_imported_anywhere_belongs_to_the_code(library: Path) -> None:
    """Goal: modules of packages, of namespaces and within functions are found, and what nothing imports is not."""
    found = sources([library / "its_target.py"], [library])
    assert {name: str(path.relative_to(library)) for name, path in found.files.items()} == {
        "my_helper": "my_helper.py",
        "my_library": "my_library/__init__.py",
        "my_library.constants": "my_library/constants.py",
        "my_library.parts.writer": "my_library/parts/writer.py",
        "my_library.reader": "my_library/reader.py",
        "my_library.saver": "my_library/saver.py",
    }
    assert found.packages == ("msgspec",)  # torch's version is known anyway


def test_what_a_run_has_shown_is_looked_for_too(library: Path) -> None:
    """Goal: a module that is imported by a computed name counts once it was seen; what isn't local doesn't become a package."""
    found = sources(
        [library / "its_target.py"], [library], ["my_library.plugin", "numpy.linalg", "nothing.at.all", "os"]
    )
    assert "my_library.plugin" in found.files
    assert found.packages == ("msgspec",)


def test_the_digest_follows_content_and_versions(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a change in a module, deep down, and another version of a package are other code; a file that nothing imports isn't."""
    one = sources([library / "its_target.py"], [library]).digest()
    (library / "unused.py").write_text("changed")
    assert sources([library / "its_target.py"], [library]).digest() == one
    (library / "my_library/parts/writer.py").write_text("from .. import constants\n# changed\n")
    two = sources([library / "its_target.py"], [library]).digest()
    monkeypatch.setattr(versions, "of", lambda *names: dict.fromkeys(names, "another"))
    assert len({one, two, sources([library / "its_target.py"], [library]).digest()}) == 3


def test_beside_a_script_comes_before_what_is_installed(tmp_path: Path) -> None:
    """Goal: a script's own `yaml.py` is what it imports; a target's file can't hide an installed package."""
    (tmp_path / "script.py").write_text("import msgspec\n")
    (tmp_path / "msgspec.py").write_text("")
    assert list(sources([tmp_path / "script.py"], [tmp_path], first=True).files) == ["msgspec"]
    assert list(sources([tmp_path / "script.py"], [tmp_path]).files) == []
