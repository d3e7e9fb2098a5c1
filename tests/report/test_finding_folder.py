"""The pages of a finding's folder."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.finding import Finding, RootCause
from chaosckpt.model.scenario import Scenario, TargetSettings
from chaosckpt.model.verdict import Violation
from chaosckpt.report.finding_folder import FILES, issue, readme, reproduce_command, without_local_paths, write

FINDING = Finding(
    id="complete-only-1",
    cause=RootCause("complete-only", "persist of save 4", "write", "latest/__#_#.distcp"),
    violation=Violation(
        invariant="complete-only",
        sentence="rank 1 loaded a mix of steps 2 and 4 from /tmp/run-1/shared/latest/__1_0.distcp",
        attempt=1,
        rank=1,
        step=4,
        path="shared:latest/__1_0.distcp",
        expected="step 2",
        seen="a mix",
    ),
    trial="1:17",
    count=36,
    schedule={},
    shrunk={},
    faults=("kill of the job before rank 1 write #3 on shared:latest/__1_0.distcp",),
    reproduced=10,
    replays=10,
    shrink_trials=31,
)
SCENARIO = Scenario(name="dcp-overwrite", target=TargetSettings(use="/home/me/code/mine.py:Mine", options={"keep": 2}))
ENVIRONMENT = {"torch": "2.13.0", "kernel": "6.1", "file system": "ext4"}


def test_readme_tells_a_person_everything():
    """The page has the sentence, the faults, the command, the rate, versions and what each file is."""
    text = readme(FINDING, SCENARIO, ENVIRONMENT, "chaosckpt reproduce here")
    for part in (
        FINDING.violation.sentence,
        FINDING.faults[0],
        "    chaosckpt reproduce here",
        "10 of 10",
        "torch: 2.13.0",
        "36 trials",
    ):
        assert part in text
    for name in (*FILES, "mine.py"):
        assert f"`{name}`" in text


def test_issue_has_no_path_of_this_machine():
    """The draft for others keeps file names, tiers and fractions, and loses every absolute path."""
    text = issue(FINDING, SCENARIO, ENVIRONMENT)
    assert "/home" not in text
    assert "/tmp" not in text
    assert ".../__1_0.distcp" in text
    assert "shared:latest/__1_0.distcp" in text
    assert ".../mine.py:Mine with keep = 2" in text


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
    assert "flaky: 3 of 10" in issue(flaky, SCENARIO, {})


def test_nothing_needed_says_so():
    """A finding whose schedule shrank to no fault at all is told as that."""
    assert "without a fault" in readme(msgspec.structs.replace(FINDING, faults=()), SCENARIO, {}, "")


def test_both_pages_are_written(tmp_path):
    """The folder gets README.md and ISSUE.md."""
    write(tmp_path, FINDING, SCENARIO, ENVIRONMENT, reproduce_command("a folder"))
    assert "chaosckpt reproduce 'a folder'" in (tmp_path / "README.md").read_text()
    assert (
        (tmp_path / "ISSUE.md")
        .read_text()
        .startswith("# complete-only violated by a fault at write latest/__#_#.distcp during persist")
    )
