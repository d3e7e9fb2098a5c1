"""Putting storage back: what a command had done in its own directories, and nothing in those that are the user's."""

from __future__ import annotations

import sys
from pathlib import Path

from chaosckpt.engine.golden.rewind import FilesInOut, rewind, rewound
from chaosckpt.engine.runner.command_arena import files_in_out
from tests.engine.scripts import arena_for, out_of, run_once, scenario_of

STAGES = """
import os, shutil, sys
out, stage = sys.argv[1:3]
open(out + "/first", "w").close()
with open(stage + "/log", "a") as log:
    log.write("more")
with open(stage + "/log") as log:
    log.read()
os.mkdir(stage + "/made")
with open(stage + "/made/file", "w") as file:
    file.write("staged")
os.makedirs(stage + "/there/deep", exist_ok=True)
with open(stage + "/there/deep/other", "w") as file:
    file.write("other")
os.unlink(stage + "/old")
os.rename(stage + "/made", out + "/made")
os.rename(stage + "/there/deep/other", out + "/other")
os.rename(out + "/first", stage + "/there/first")
"""


def test_what_was_moved_in_is_there_and_the_directory_beside_is_left_alone(tmp_path: Path) -> None:
    """Goal: a golden recovery starts on the storage of its step, though files came from a directory that is not emptied."""
    stage = tmp_path / "stage"
    (stage / "there").mkdir(parents=True)
    for name in ("log", "old"):
        (stage / name).write_text("kept")
    scenario = scenario_of((sys.executable, "-c", STAGES, "{out}", str(stage)), tmp_path, track=(str(stage),))
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena, record="data")
        assert run.outcome == "finished", run.output
        left = sorted((str(path), path.is_file() and path.read_text()) for path in stage.rglob("*"))
        for place in range(len(run.trace)):
            rewind(arena, run.trace[: place + 1], 1)
        files = FilesInOut(arena, run.trace, lambda path: path)
        for operation in rewound(arena, run.trace, 1):
            files.applied(operation)
            assert files.now() == sorted(files_in_out(arena))
        assert files.now()
        assert (out_of(arena) / "made" / "file").read_text() == "staged"
        assert (out_of(arena) / "other").read_text() == "other"
        assert not (out_of(arena) / "first").exists()
        rewind(arena, run.trace[:1], 1)
        assert [path.name for path in out_of(arena).iterdir()] == ["first"]
        assert sorted((str(path), path.is_file() and path.read_text()) for path in stage.rglob("*")) == left
        assert not [path for path in arena.directory.iterdir() if path.name.startswith("tmp") and path.name != "tmp"]
