"""The final summary and the result of a reproduction, as people read them."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.summary import Replay, Reproduction
from chaosckpt.report.text import percent, replay_line, reproduction_text, summary_text
from tests.report.summaries import BARE, CLEAN, FOUND, MIX


def shown(**changes) -> str:
    return summary_text(msgspec.structs.replace(CLEAN, **changes)).plain


def test_leads_with_the_first_finding():
    """The first finding's sentence, its faults and the command come before every count."""
    lines = summary_text(FOUND).plain.splitlines()
    assert lines[0] == "VIOLATION  complete-only"
    assert lines[2].strip() == MIX.sentence
    text = "\n".join(lines)
    assert text.index(MIX.faults[0]) < text.index(MIX.command) < text.index("37 violations")


def test_further_findings_take_one_line_each():
    """Every finding but the first has exactly one line, with its count, its rate and its faults."""
    lines = [line for line in summary_text(FOUND).plain.splitlines() if "newest-complete-commit" in line]
    assert len(lines) == 1
    assert "×1" in lines[0]
    assert "reproduced 3/10" in lines[0]
    assert "first fault, then second fault" in lines[0]


def test_counts_in_order_of_number():
    """Tallies are sorted as numbers, not as text, so that 10 comes after 2."""
    assert "2: 40, 3: 19, 10: 1" in summary_text(FOUND).plain


def test_stages_in_order_of_happening():
    """Coverage by stage follows the order of a save, whatever the order of the dictionary."""
    assert "persist 100/300, load 20/100" in summary_text(FOUND).plain


def test_a_clean_run_says_where_it_is():
    """Without findings the last line says so, and names the run."""
    assert shown().splitlines()[-1] == "no violation in 10 trials; run: runs/002"


def test_too_many_inconclusive_is_no_clean_result():
    """A campaign whose trials mostly can't be judged must not read as a pass."""
    text = shown(passed=2, inconclusive=8, inconclusive_reasons={"the fault was not injected": 8})
    assert "not a clean result" in text.splitlines()[-1]
    assert "inconclusive ×8: the fault was not injected" in text


def test_no_trial_is_no_clean_result():
    """A campaign that ran nothing says that nothing is known."""
    assert "nothing is known" in shown(trials=0, passed=0)


def test_remarks_limit_the_counts():
    """A missing gate, an interruption, trouble of the harness and what no trial could judge are said in words."""
    text = shown(gate="none", interrupted=True, harness_troubles=1, gaps={"progress was not judged: it was late": 2})
    assert "in 2 trials progress was not judged: it was late" in text
    assert "stage boundaries only" in text
    assert "chaosckpt fuzz --resume runs/002" in text
    assert "failed in 1 trial;" in text


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 0, "-"), (0, 9, "0 %"), (9, 9, "100 %"), (1, 1000, "1 %"), (999, 1000, "99 %"), (1, 3, "33 %")],
)
def test_percent_never_rounds_to_all_or_nothing(part, whole, expected):
    """999 of 1000 isn't 100 %, and 1 of 1000 isn't 0 %."""
    assert percent(part, whole) == expected


def test_reproduction_says_how_often_and_what_differs():
    """The result names the sentence, the faults, the differences and k/n."""
    replays = (Replay(number=1, outcome="violation", same=True), Replay(number=2, outcome="pass", same=False))
    result = Reproduction(
        trial="1:3", faults=("a kill",), replays=replays, expected="a sentence", differences=("torch is 2.14",)
    )
    text = reproduction_text(result).plain
    for part in ("a sentence", "a kill", "torch is 2.14", "pass: 1", "reproduced 1/2"):
        assert part in text
    assert replay_line(replays[0], 2) == "replay 1/2: the same violation"
    assert replay_line(replays[1], 2) == "replay 2/2: pass"


def test_a_trial_by_name_may_pass():
    """A trial that passes each time is reproduced too, and isn't called a violation."""
    replay = Replay(number=1, outcome="pass", same=True)
    text = reproduction_text(Reproduction(trial="1:3", faults=("a kill",), replays=(replay,))).plain
    assert text.endswith("reproduced 1/1 (outcome: pass)")
    assert replay_line(replay, 1) == "replay 1/1: pass"


def test_recovery_after_each_operation_is_told_with_its_first_gap():
    """How often nothing acceptable was left, and where first; one operation is one."""
    gap = "after rank 1 opened rank-1.pt for writing: step 2 was gone and nothing had replaced it"
    assert f"After 12 of them no acceptable checkpoint was left, first {gap}" in shown(
        prefixes=21, recovery_gaps=(gap,) * 12
    )
    assert "after each of 1 operation of a fault-free run: an acceptable checkpoint was left" in shown(prefixes=1)


def test_one_of_a_thing_has_no_s():
    """Counts agree with their nouns."""
    text = shown(passed=9, violations=1, singles=1, multis=1)
    assert "9 passed, 1 violation, 0 inconclusive" in text
    assert "1 single fault, 1 schedule of several" in text


def test_the_launch_is_in_the_summary():
    """Whether the ranks were forks or started cold is said in words."""
    for launch, word in (("fork", "warm"), ("exec", "cold")):
        assert f"launch        {word}" in summary_text(msgspec.structs.replace(FOUND, launch=launch)).plain


def test_a_finding_that_was_not_shrunk_says_so():
    """An interrupted campaign's finding has no rate, and doesn't claim one."""
    bare = msgspec.structs.replace(BARE, reproduced="1/1", interrupted=True)
    text = summary_text(msgspec.structs.replace(FOUND, findings=(bare, bare))).plain
    assert text.count("not shrunk and replayed to the end, since the campaign was interrupted") == 2
    assert "1/1" not in text
