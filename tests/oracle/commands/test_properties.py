"""Properties that hold for every journal of a command, whatever it said and left, and wherever the journal was cut off."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosckpt.model import journal as j
from chaosckpt.model.command import CommandSettings
from chaosckpt.oracle.cause import root_cause
from chaosckpt.oracle.commands.judgement import check_command, explain_command
from chaosckpt.oracle.commands.precedence import COMMAND_INVARIANTS
from tests.oracle.commands.tales import SAVED, Tale, operation

QUICK = settings(max_examples=150, deadline=None)
SIGNS = st.sets(st.sampled_from(SAVED)).map(sorted)
STEPS = st.sampled_from([2, 4, 6])
LABELS = st.sampled_from(
    ["persist of save 2", "persist of save 4", "commit of save 4", "retire of save 6", "load of the recovery", ""]
)
TAILS = st.sampled_from(
    ["", "EOFError", "FileNotFoundError: '/o/ckpt-4/x.json'", "[rank1]: RuntimeError: Connection closed by peer"]
)


@st.composite
def tales(draw: st.DrawFn) -> Tale:
    """Up to three launches and a closing one, each of which says, leaves and does anything."""
    resume_argv = draw(st.sampled_from([(), ("--resume",)]))
    command = CommandSettings(argv=("python", "t.py", "{out}"), resume_argv=resume_argv)
    count = draw(st.integers(0, 3))
    tale = Tale(draw(SIGNS), faults=[["cut"]] * count, command=command)
    for number in range(count + 1):
        tale.launch(closing=number == count, ranks=draw(st.sampled_from([1, 1, 2])))
        tale.resumes(*draw(st.lists(st.one_of(STEPS, st.none()), max_size=2)))
        for step in draw(st.lists(STEPS, max_size=3)):
            getattr(tale, draw(st.sampled_from(["saves", "tears", "saves_unknown", "removes", "says_saved"])))(step)
        if draw(st.booleans()):
            tale.refused()
        if number < count:
            label, strikes = draw(LABELS), draw(st.sampled_from(["fault", "fault", "error", "nothing"]))
            if strikes == "fault":
                tale.fault(label)
            elif strikes == "error":
                tale.error(label)
        end = draw(st.sampled_from(["killed", "fails", "hangs", "finishes"]))
        if end == "killed" and number < count:
            tale.killed()
        elif end == "fails":
            tale.fails(draw(TAILS), signal=draw(st.sampled_from([None, 9])))
        elif end == "hangs":
            tale.hangs(confirmed=draw(st.booleans()))
        else:
            tale.finishes(equal=draw(st.booleans()))
        if draw(st.integers(0, 9)) == 0:
            tale.damaged()
    return tale


@QUICK
@given(tales())
def test_a_verdict_is_always_told(tale):
    """Judging and explaining never raise; a violation has a cause and evidence in the journal, and is judged."""
    journal, verdict = tale.journal(), tale.verdict()
    assert verdict.outcome.upper() in tale.explained()
    assert verdict == tale.verdict()
    for found in filter(None, (verdict.primary, *verdict.others)):
        assert found.invariant in verdict.judged
        assert found.error_type
        assert all(0 <= index < len(journal.events) for index in found.evidence)
    if verdict.primary is not None:
        assert root_cause(journal, verdict).invariant == verdict.primary.invariant


@QUICK
@given(tales(), st.data())
def test_a_journal_that_is_cut_off(tale, data):
    """Cut off anywhere it is inconclusive, and can be explained."""
    events = tale.journal().events
    cut = j.Journal(events[: data.draw(st.integers(0, len(events) - 1))])
    assert check_command(tale.scenario, cut).outcome == "inconclusive"
    assert "INCONCLUSIVE" in explain_command(tale.scenario, cut)


@QUICK
@given(tales())
def test_without_signs_only_the_end_is_judged(tale):
    """Without any sign nothing is said about checkpoints or results."""
    first = tale.events[0]
    assert isinstance(first, j.TrialStarted)
    tale.events[0] = msgspec.structs.replace(first, judged=())
    verdict = tale.verdict()
    assert set(verdict.judged) <= {"progress"}
    assert len(verdict.unjudged) + len(verdict.judged) == len(COMMAND_INVARIANTS)


@QUICK
@given(st.lists(st.tuples(STEPS, LABELS, st.booleans()), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_a_script_that_keeps_its_word_is_never_accused(lives, says, pointer):
    """Saves in order, each said when it is whole; killed anywhere; it resumes from the newest that was said, or a newer whole one."""
    signs = SAVED if says else tuple(sign for sign in SAVED if sign != "saved")
    tale = Tale(signs, faults=[["cut"]] * len(lives))
    done = 0
    for struck, label, whole in lives:
        tale.launch()
        resumed = done
        if resumed:
            tale.resumes(resumed)
        if "recovery" in label or not label:
            tale.fault("load of the recovery", operation("out:ckpt-2.pt", "read")).killed()
            continue
        for step in range(resumed + 2, struck, 2):
            tale.saves(step)
            done = step
        if struck > resumed:
            if whole:
                tale.saves(struck, said=False)
                done = done if pointer else struck
            elif tale.lying.get(struck, "") is not None:
                tale.tears(struck)
        at = max(struck, resumed + 2)
        tale.fault(f"persist of save {at}").killed()
    tale.closes()
    if done:
        tale.resumes(done)
    tale.saves(*range(done + 2, 8, 2)).finishes()
    verdict = tale.verdict()
    assert verdict.primary is None, verdict.primary
