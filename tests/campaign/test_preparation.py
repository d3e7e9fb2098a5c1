"""Preparing: what golden runs take for the same in every trial is, and what they depend on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from chaosckpt.campaign.preparation import cached, prepare
from chaosckpt.engine.golden import cache
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import RunSettings, Scenario, TargetSettings, TopologySettings
from tests.engine.scripts import COUNTING, python, scenario_of

PLACES = (
    COUNTING.replace('file.write(f"{step}")', 'file.write(f"{step} {out}")')
    .replace('open(f"{out}/ckpt-{done[-1]}").read()', 'open(f"{out}/ckpt-{done[-1]}").read().split()[0]')
    .replace('file.write("6")', "file.write(out)")
)
"""Its checkpoints and its result hold the path of {out}, as training_args.bin of transformers does."""

DRAWN = PLACES.replace('f"{out}/new"', 'f"{out}/tmp{name}"').replace(
    "    step += 1\n", "    step += 1\n    name = os.urandom(4).hex()\n"
)
"""The same under temporary names that are drawn anew each time."""


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("text", [PLACES, DRAWN], ids=["steady names", "drawn names"])
def test_what_holds_the_path_of_out_is_not_the_same(tmp_path: Path, text: str, cold: bool) -> None:
    """Goal: every trial may run in another directory, so no file is asked to be, byte by byte, as in a golden run's directory."""
    (tmp_path / "train.py").write_text(text)
    argv = python(tmp_path / "train.py", "{out}")
    signs = {"cold": cold, "checkpoints": "{out}/ckpt-*", "result": "{out}/final"}
    one_rank = TopologySettings(ranks=((1,),))
    prepared = prepare(msgspec.structs.replace(scenario_of(argv, tmp_path, **signs), topology=one_rank))
    facts = prepared.facts
    assert facts is not None
    assert facts.standard.same_content == ()
    assert facts.standard.same_size == ("out:ckpt-#",)
    assert "result" not in facts.judged
    assert any("different results" in remark for remark in facts.remarks)
    assert any(point.address.op == "rename" for point in prepared.census.main.points)


def test_golden_results_hold_only_for_the_code_that_they_were_made_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: what the target's file imports from beside it is in the key; a module that only a run has shown is compared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, text in {"mine.py": "import library\n", "library.py": "one", "plugin.py": "one"}.items():
        (tmp_path / name).write_text(text)
    scenario = Scenario(name="t", target=TargetSettings(use=f"{tmp_path}/mine.py:Mine"), run=RunSettings(gate="none"))
    subject = subject_of(scenario)
    key = cache.key(scenario, subject.sources())
    modules = ("plugin",)
    golden = Prepared(census=Census(runs=()), modules=modules, gate="none", code=subject.sources(modules).digest())
    cache.store(cache.directory(), key, golden)
    assert cached(scenario) == golden
    (tmp_path / "plugin.py").write_text("two")
    assert cached(scenario) is None
    (tmp_path / "plugin.py").write_text("one")
    (tmp_path / "library.py").write_text("two")
    assert cached(scenario) is None
    assert cache.key(scenario, subject.sources()) != key


DATED = """
import glob, json, os, re, sys, time
out = sys.argv[1]
have = sorted(int(re.search(r"ckpt-(\\d+)", path)[1]) for path in glob.glob(f"{out}/run-*/ckpt-*.json"))
directory = f"{out}/run-{time.strftime('%Y%m%d-%H%M')}"
os.makedirs(directory, exist_ok=True)
open(f"{directory}/events.{time.time_ns()}.{os.getpid()}", "w").close()
for step in range((have or [0])[-1] + 1, 5):
    with open(f"{directory}/ckpt-{step}.json", "w") as file:
        json.dump({"step": step}, file)
"""
"""Saves into a directory that is called after the minute in which it began, beside a log that is called after its process."""


def test_checkpoints_below_a_dated_directory_are_found_in_the_next_minute_too(tmp_path: Path) -> None:
    """Goal: neither the census nor the glob that is guessed holds a time or a process number."""
    (tmp_path / "dated.py").write_text(DATED)
    scenario = scenario_of(python(tmp_path / "dated.py", "{out}"), tmp_path)
    prepared = prepare(msgspec.structs.replace(scenario, topology=TopologySettings(ranks=((1,),))))
    assert prepared.facts is not None
    assert prepared.facts.checkpoints == "{out}/run-*/ckpt-*.json"
    written = {point.address.path for point in prepared.census.main.points if point.address.op == "write"}
    assert written == {f"out:run-*/ckpt-{step}.json" for step in range(1, 5)}
