"""Properties that hold for every journal of a command, whatever it said and left, and wherever the journal was cut off."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosckpt.model import journal as j
from chaosckpt.model.scenario import CommandSettings
from chaosckpt.oracle import check, explain, root_cause
from chaosckpt.oracle.check import BUILT_IN
from tests.oracle.command_journals import SAVED, CommandJournal
from tests.oracle.journals import operation

QUICK = settings(max_examples=150, deadline=None)
MARKERS = st.sets(st.sampled_from(SAVED)).map(sorted)
STEPS = st.sampled_from([2, 4, 6])
LABELS = st.sampled_from(
    ["persist of save 2", "persist of save 4", "commit of save 4", "retire of save 6", "load of the recovery", ""]
)
TAILS = st.sampled_from(
    ["", "EOFError", "FileNotFoundError: '/o/ckpt-4/x.json'", "[rank1]: RuntimeError: Connection closed by peer"]
)


@st.composite
def command_trials(draw: st.DrawFn) -> CommandJournal:
    """Up to three attempts and a closing one, each of which says, leaves and does anything."""
    resume_argv = draw(st.sampled_from([(), ("--resume",)]))
    command = CommandSettings(argv=("python", "t.py", "{out}"), resume_argv=resume_argv)
    count = draw(st.integers(0, 3))
    trial = CommandJournal(draw(MARKERS), faults=[["cut"]] * count, command=command)
    for number in range(count + 1):
        trial.attempt([draw(st.sampled_from([1, 1, 2]))], closing=number == count)
        trial.says_resumed(*draw(st.lists(st.one_of(STEPS, st.none()), max_size=2)))
        for step in draw(st.lists(STEPS, max_size=3)):
            getattr(trial, draw(st.sampled_from(["saves", "tears", "saves_unknown", "removes", "says_saved"])))(step)
        if draw(st.booleans()):
            trial.refused()
        if number < count:
            label, strikes = draw(LABELS), draw(st.sampled_from(["fault", "fault", "error", "nothing"]))
            if strikes == "fault":
                trial.fault(at=trial.struck, label=label)
            elif strikes == "error":
                trial.injects("EIO", trial.struck, label)
        end = draw(st.sampled_from(["killed", "fails", "hangs", "finishes"]))
        if end == "killed" and number < count:
            trial.kills()
        elif end == "fails":
            trial.fails(draw(TAILS), signal=draw(st.sampled_from([None, 9])))
        elif end == "hangs":
            trial.hangs(confirmed=draw(st.booleans()))
        else:
            trial.finishes(equal=draw(st.booleans()))
        if draw(st.integers(0, 9)) == 0:
            trial.mutates("out:ckpt-2.pt")
    return trial


@QUICK
@given(command_trials())
def test_a_verdict_is_always_told(trial):
    """Judging and explaining never raise; a violation has a cause and evidence in the journal, and is judged."""
    journal, verdict = trial.journal(), trial.verdict()
    assert verdict.outcome.upper() in trial.explained()
    assert verdict == trial.verdict()
    for found in filter(None, (verdict.primary, *verdict.others)):
        assert found.invariant in verdict.judged
        assert found.error_type
        assert all(0 <= index < len(journal.events) for index in found.evidence)
    if verdict.primary is not None:
        assert root_cause(journal, verdict).invariant == verdict.primary.invariant


@QUICK
@given(command_trials(), st.data())
def test_a_journal_that_is_cut_off(trial, data):
    """Cut off anywhere it is inconclusive, and can be explained."""
    events = trial.journal().events
    cut = j.Journal(events[: data.draw(st.integers(0, len(events) - 1))])
    assert check(trial.scenario, cut).outcome == "inconclusive"
    assert "INCONCLUSIVE" in explain(trial.scenario, cut)


@QUICK
@given(command_trials())
def test_without_markers_only_the_end_is_judged(trial):
    """Without any marker nothing is said about checkpoints or results."""
    first = trial.events[0]
    assert isinstance(first, j.TrialStarted)
    trial.events[0] = msgspec.structs.replace(first, judged=())
    verdict = trial.verdict()
    assert set(verdict.judged) <= {"progress"}
    assert len(verdict.unjudged) + len(verdict.judged) == sum(
        invariant.of_command is not None for invariant in BUILT_IN
    )


@QUICK
@given(st.lists(st.tuples(STEPS, LABELS, st.booleans()), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_a_script_that_keeps_its_word_is_never_accused(attempts, says, pointer):
    """Saves in order, each said when it is whole; killed anywhere; it resumes from the newest that was said, or a newer whole one."""
    markers = SAVED if says else tuple(marker for marker in SAVED if marker != "saved")
    trial = CommandJournal(markers, faults=[["cut"]] * len(attempts))
    done = 0
    for struck, label, whole in attempts:
        trial.attempt()
        resumed = done
        if resumed:
            trial.says_resumed(resumed)
        if "recovery" in label or not label:
            trial.cut(operation(path="out:ckpt-2.pt", op="read"), "load of the recovery")
            continue
        for step in range(resumed + 2, struck, 2):
            trial.saves(step)
            done = step
        if struck > resumed:
            if whole:
                trial.saves(struck, said=False)
                done = done if pointer else struck
            elif trial.lying.get(struck, "") is not None:
                trial.tears(struck)
        at = max(struck, resumed + 2)
        trial.cut(label=f"persist of save {at}")
    trial.attempt(closing=True)
    if done:
        trial.says_resumed(done)
    trial.saves(*range(done + 2, 8, 2)).finishes()
    verdict = trial.verdict()
    assert verdict.primary is None, verdict.primary
