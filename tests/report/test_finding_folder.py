"""The pages of a finding's folder."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.finding import Evidence, Excerpt, Finding, RootCause, StoredFile, StoredStorage
from chaosckpt.model.scenario import CommandSettings, Scenario, TargetSettings
from chaosckpt.model.verdict import Violation
from chaosckpt.report.finding_folder import FILES, issue, readme, reproduce_command, without_local_paths, write

ADDRESS = "rank 1 write #3 on shared:latest/__1_0.distcp (incarnation 1, main)"
FINDING = Finding(
    id="complete-only-1",
    cause=RootCause("complete-only", "persist", "write", "shared:latest/__#_#.distcp"),
    violation=Violation(
        invariant="complete-only",
        sentence="rank 1 loaded a mix of steps 2 and 4 from /tmp/run-1/shared/latest/__1_0.distcp",
        attempt=1,
        rank=1,
        step=4,
        path="shared:latest/__1_0.distcp",
        expected="step 2",
        seen="a mix, in /tmp/run-1/shared/latest/__1_0.distcp",
        error_type="mixed-generations",
    ),
    trial="1:17",
    count=36,
    schedule={},
    shrunk={"attempts": [{"faults": [{"kind": "cut"}]}]},
    faults=("kill of the whole job before rank 1's fourth write to latest/__1_0.distcp, while saving step 4",),
    addresses=((ADDRESS,),),
    reproduced=10,
    replays=10,
    shrink_trials=31,
)
SCENARIO = Scenario(name="dcp-overwrite", target=TargetSettings(use="/home/me/code/mine.py:Mine", options={"keep": 2}))
ENVIRONMENT = {"torch": "2.13.0", "kernel": "6.1", "cpu_flags": "fc3ed50523cdd859"}
EVIDENCE = Evidence(
    story=("First launch: step 2 is saved.", "Second launch: /tmp/run-1/shared/latest is loaded."),
    code=(Excerpt("`save` of Mine", "def save(self, state, step): ..."),),
    storage=StoredStorage(
        files=(
            StoredFile(path="shared", kind="directory"),
            StoredFile(path="shared/latest/.metadata", bytes=12742, writer="the save of step 2"),
            StoredFile(path="local-1/rank-1.pt", bytes=1),
        )
    ),
    traceback='Traceback (most recent call last):\n  File "/home/me/code/mine.py", line 3, in recover\nEOFError',
    versions=("PyTorch version: 2.13.0",),
    claim="Checks that Mine.recover loads one saved state",
)


def test_readme_tells_a_person_everything():
    """The page has the sentence, the faults, the commands, the rate, versions and what each file is."""
    text = readme(FINDING, SCENARIO, ENVIRONMENT, "chaosckpt reproduce here", EVIDENCE)
    for part in (
        FINDING.violation.sentence,
        "1. Kill of the whole job before rank 1's fourth write to latest/__1_0.distcp",
        "    chaosckpt reproduce here",
        "    python reproduce.py",
        "10 of 10 replays showed it again",
        "torch: 2.13.0",
        "digest of the processor's flags: fc3ed50523cdd859",
        "36 trials of this campaign have this root cause",
        "target: /home/me/code/mine.py:Mine with keep = 2",
    ):
        assert part in text
    for name in (*FILES, "mine.py", "reproduce.py", "storage/"):
        assert f"`{name}`" in text


def test_the_exact_address_stands_beside_the_fault_once():
    """A person reads the phrase, a machine the address; neither page repeats it."""
    assert readme(FINDING, SCENARIO, ENVIRONMENT, "", EVIDENCE).count(ADDRESS) == 1
    assert ADDRESS not in issue(FINDING, SCENARIO, EVIDENCE)


def test_one_trial_is_one_trial():
    """No "1 trials"."""
    once = msgspec.structs.replace(FINDING, count=1, shrink_trials=1, replays=1, reproduced=1)
    text = readme(once, SCENARIO, {}, "")
    assert "1 trial of this campaign has this root cause" in text
    assert "shrunk with 1 trial\n" in text
    assert "1 of 1 replay showed" in text


def test_without_a_script_the_readme_says_why():
    """Where the fault can't be shown without the harness, that is said, and neither file is promised."""
    without = msgspec.structs.replace(EVIDENCE, no_script="a fault strikes the recovery itself", claim="")
    text = readme(FINDING, SCENARIO, {}, "", without)
    assert "There is no reproduce.py: a fault strikes the recovery itself." in text
    assert "`storage/`" not in text
    assert "pip install chaosckpt" in issue(FINDING, SCENARIO, without)


def test_the_issue_speaks_to_somebody_who_never_heard_of_the_harness():
    """Title, code, what happened in order, traceback, the listing with bytes and writers, and versions."""
    text = issue(FINDING, SCENARIO, EVIDENCE)
    assert text.splitlines()[0] == (
        "# Mine: after a crash during a save (write of latest/__N_N.distcp), the restart loads a mix of two saves without an error"
    )
    order = [
        "with keep = 2",
        "def save(self, state, step)",
        "1. First launch",
        "2. Second launch",
        "### Expected",
        "EOFError",
        "| latest/.metadata | 12742 | the save of step 2 |",
        "| rank-1.pt (node-local, node 1) | 1 | not known |",
        "`reproduce.py`",
        "PyTorch version: 2.13.0",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    for word in ("incarnation", "attempt 1", "complete-only", "fc3ed50523cdd859", "shared:"):
        assert word not in text


def test_issue_has_no_path_of_this_machine():
    """The draft for others keeps file names and loses every absolute path."""
    text = issue(FINDING, SCENARIO, EVIDENCE)
    assert "/home" not in text
    assert "/tmp" not in text
    assert ".../__1_0.distcp" in text


def test_a_commands_pages_name_it():
    """A command is told by its line, and by its script in the title; no empty target."""
    scenario = Scenario(name="c", command=CommandSettings(argv=("python", "code/train.py", "{out}")))
    assert "command: python code/train.py {out}" in readme(FINDING, scenario, {}, "")
    assert "target:" not in readme(FINDING, scenario, {}, "")
    assert issue(FINDING, scenario).startswith("# train.py: after a crash")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open '/a/b/c.pt' failed", "open '.../c.pt' failed"),
        ("10/10 replays, shared:a/b, https://example.org/a", "10/10 replays, shared:a/b, https://example.org/a"),
        ("close shared:step-#/COMPLETE, a*/b", "close shared:step-#/COMPLETE, a*/b"),
        ("/a/b\n/c/d", ".../b\n.../d"),
        ("looked for /scratch/x/step-*/COMPLETE", "looked for .../COMPLETE"),
    ],
)
def test_paths_are_told_from_other_slashes(text, expected):
    """Only absolute paths are shortened."""
    assert without_local_paths(text) == expected


def test_flaky_findings_say_so():
    """A violation that not every replay shows is labelled with its rate."""
    flaky = msgspec.structs.replace(FINDING, reproduced=3)
    assert "flaky: 3 of 10" in readme(flaky, SCENARIO, {}, "")
    assert "3 of 10 times" in issue(flaky, SCENARIO)


def test_nothing_needed_says_so():
    """A finding whose schedule shrank to no fault at all is told as that."""
    bare = msgspec.structs.replace(FINDING, faults=(), addresses=(), shrunk={"attempts": []})
    assert "No fault is needed" in readme(bare, SCENARIO, {}, "")
    assert "after a plain restart" in issue(bare, SCENARIO)


def test_both_pages_are_written(tmp_path):
    """The folder gets README.md and ISSUE.md."""
    write(tmp_path, FINDING, SCENARIO, ENVIRONMENT, reproduce_command("a folder"), EVIDENCE)
    assert "chaosckpt reproduce 'a folder'" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "ISSUE.md").read_text().startswith("# Mine: after a crash during a save")
