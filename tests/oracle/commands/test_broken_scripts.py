"""The broken shapes that people met come out under the name that tells them."""

from __future__ import annotations

from chaosckpt.oracle.cause import root_cause
from tests.oracle.commands.tales import SAVED, UNSAID, Tale, all_violated, killed_in_save_4, operation, violated

MISSING = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    trainer.train(resume_from_checkpoint=True)
FileNotFoundError: [Errno 2] No such file or directory: '/o/out/checkpoint-4/trainer_state.json'
"""


def test_an_incomplete_directory_is_picked():
    """C2: killed before the last file of a save, it takes that directory and fails, in spite of the step before."""
    tale = killed_in_save_4().closes().fails(MISSING)
    assert violated(tale) == ("newest-complete", "FileNotFoundError")
    primary = tale.verdict().primary
    assert primary is not None
    assert "trainer_state.json" in primary.sentence
    assert "step 2" in primary.sentence
    assert primary.step == 2


def test_no_fallback_in_a_loop():
    """C3: launch after launch fails on the same remains; the job never ends."""
    tale = killed_in_save_4(faults=[["cut"], []]).launch().fails(MISSING)
    tale.closes().fails(MISSING)
    assert all_violated(tale) == {"newest-complete", "progress"}


def test_a_torn_file_is_loaded():
    """C6: written in place, torn by a kill, and taken for whole: the result is another one."""
    tale = killed_in_save_4().closes().resumes(4).saves(6).finishes(equal=False)
    assert violated(tale) == ("complete-only", "incomplete-checkpoint")
    assert "result-equal" in all_violated(tale)


def test_a_torn_file_that_was_read_is_told_from_one_that_was_not():
    """Its state may lie in another, whole file, too: what no file of the torn checkpoint was read for is no violation."""
    for read, broken in (((4,), True), ((2, 4), True), ((), False), ((2,), False)):
        tale = killed_in_save_4()
        tale.read = read
        tale.closes().resumes(4).saves(6).finishes(equal=None)
        assert ("complete-only" in all_violated(tale)) is broken, read


def test_a_torn_file_stops_the_job():
    """C6 with a loader that checks: an older one was there, and nothing falls back to it."""
    torn = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    assert violated(killed_in_save_4().closes().fails(torn)) == ("newest-complete", "RuntimeError")


def test_removing_before_saving():
    """C12: the old one is removed first, and a kill in between leaves nothing."""
    tale = Tale(SAVED, faults=[["cut"], ["cut"]]).launch().saves(2).cut()
    tale.launch().resumes(2).removes(2).tears(4).cut("persist of save 4")
    tale.closes().saves(2, 4, 6).finishes()
    assert violated(tale) == ("never-bare", "nothing-left")


def test_removing_before_saving_in_the_first_launch():
    """C12, seen by what the command itself had said."""
    tale = Tale(SAVED).launch().saves(2).removes(2).cut("retire of save 4").closes().saves(2, 4, 6).finishes()
    assert "never-bare" in all_violated(tale)


def test_a_copy_that_nothing_makes_use_of():
    """C12, though a copy lies there under another name: the next launch begins anew, and so the copy is none that counts."""
    tale = Tale(SAVED, faults=[["cut"]]).launch().saves(2).removes(2)
    tale.spare = (2, 4)
    assert violated(tale.cut().closes().saves(2, 4, 6).finishes()) == ("never-bare", "nothing-left")


def test_removing_before_saving_unsaid():
    """C12, in a script that says nothing: the fault struck while an older one was removed, and nothing complete is left."""
    for torn in (False, True):
        tale = Tale(UNSAID).launch().saves(2).removes(2)
        tale = (tale.tears(4) if torn else tale).cut("retire of save 2")
        assert violated(tale.closes().saves(2, 4, 6).finishes()) == ("never-bare", "nothing-left")


def test_nothing_is_left_behind_two_saves():
    """C12, unsaid, killed while the third save is written: golden runs tell that two were finished before."""
    tale = Tale(UNSAID).launch().saves(2, 4).removes(2, 4).tears(6).cut("persist of save 6")
    assert violated(tale.closes().saves(2, 4, 6).finishes()) == ("never-bare", "nothing-left")
    # The save before may still have been going on in the background, and so it is not asked for.
    tale = Tale(UNSAID).launch().tears(2).tears(4).cut("persist of save 4")
    assert violated(tale.closes().saves(2, 4, 6).finishes()) == ("", "")


def test_the_limit_removes_the_wrong_one():
    """C16: with a limit the newest is removed, and an older one is resumed from."""
    tale = Tale(SAVED).launch().saves(2, 4).removes(4).cut("retire of save 6")
    tale.closes().resumes(2).saves(4, 6).finishes()
    assert violated(tale) == ("newest-complete", "not-what-was-said")


def test_an_older_one_is_chosen():
    """What was said to be saved is complete, and something older is resumed from; without --saved, too, once a later save began."""
    for judged in (SAVED, UNSAID):
        tale = Tale(judged).launch().saves(2, 4).tears(6).cut("persist of save 6")
        assert violated(tale.closes().resumes(2).saves(4, 6).finishes()) == ("newest-complete", "older-checkpoint")


def test_said_too_early():
    """It says that a step is saved while the save goes on, and after a kill there is less."""
    tale = Tale(SAVED).launch().saves(2).says_saved(4).tears(4).cut()
    assert violated(tale.closes().resumes(2).saves(4, 6).finishes()) == ("newest-complete", "not-what-was-said")


def test_a_silent_fresh_start():
    """C21: it begins anew though it was seen to resume, and says nothing."""
    for judged in (SAVED, UNSAID):
        tale = Tale(judged).launch().saves(2, 4).tears(6).cut("persist of save 6")
        assert violated(tale.closes().saves(2, 4, 6).finishes()) == ("newest-complete", "nothing-chosen")


def test_remains_block_the_next_save():
    """C5: it resumes rightly, and fails when it saves the step again whose remains are there."""
    tail = "FileExistsError: [Errno 17] File exists: '/o/out/checkpoint-4'"
    assert violated(killed_in_save_4().closes().resumes(2).fails(tail)) == ("progress", "FileExistsError")


def test_hangs():
    """A hang before it resumed is no clear failure; one later is a lack of progress; one that isn't confirmed is neither."""
    assert violated(killed_in_save_4().closes().hangs()) == ("clear-failure", "hang")
    assert violated(killed_in_save_4().closes().resumes(2).hangs()) == ("progress", "hang")
    verdict = killed_in_save_4().closes().hangs(confirmed=False).verdict()
    assert verdict.outcome == "inconclusive"


def test_an_error_that_names_nothing():
    """With nothing complete to resume from the error has to name the checkpoint."""
    tale = Tale(SAVED).launch().tears(2).cut("persist of save 2").closes().fails("EOFError")
    assert violated(tale) == ("clear-failure", "EOFError")


TORCHRUN = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 28, in <module>
[rank1]:     torch.set_rng_state(torch.load(f"{out}/ckpt-{newest}/rng-{rank}.pt"))
[rank1]:   File "/lib/python3.11/site-packages/torch/serialization.py", line 1568, in load
[rank1]: EOFError: Ran out of input
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 45, in <module>
[rank0]: RuntimeError: [/__w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:25829. Check the logs.
W1130 01:42:27.177000 5440 torch/distributed/elastic/api.py:1028] Sending process 5529 closing signal SIGTERM
E1130 01:42:27.361000 5440 torch/distributed/elastic/api.py:1002] failed (exitcode: 1) local_rank: 1 of binary: /usr/bin/python
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
  exitcode  : 1 (pid: 5530)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def test_what_torchrun_says_of_its_ranks_names_no_checkpoint():
    """The rank's own error counts, not that of the one that lost it as its peer, nor the paths and pages that torchrun tells."""
    tale = Tale(SAVED).launch().tears(2).cut("persist of save 2").closes().fails(TORCHRUN)
    assert violated(tale) == ("clear-failure", "EOFError")
    primary = tale.verdict().primary
    assert primary is not None
    assert "Ran out of input" in primary.sentence
    named = TORCHRUN.replace("Ran out of input", "Ran out of input: '/o/out/ckpt-2/rng-1.pt'")
    assert "clear-failure" not in all_violated(
        Tale(SAVED).launch().tears(2).cut("persist of save 2").closes().fails(named)
    )
    tale = Tale(SAVED).launch().tears(2).cut("persist of save 2").closes()
    assert violated(tale.fails("RuntimeError: /o/out/ckpt-2.pt is torn")) == ("progress", "RuntimeError")


def test_another_result():
    """Everything about its checkpoints is right, and it still ends elsewhere."""
    tale = killed_in_save_4().closes().resumes(2).saves(4, 6).finishes(equal=False)
    assert violated(tale) == ("result-equal", "other-result")


def test_resuming_alone_changes_the_result():
    """C28: where golden recoveries end elsewhere, too, no fault is behind it, and all such trials are one finding."""
    judged = tuple(sign for sign in SAVED if sign != "exact")
    causes = set()
    for label in ("persist of save 4", "persist of save 6"):
        tale = Tale(judged).launch().saves(2).fault(label, operation(f"out:{label[-1]}.pt")).killed()
        tale.closes().resumes(2).saves(4, 6).finishes(equal=False)
        verdict = tale.verdict()
        causes.add(root_cause(tale.journal(), verdict))
        assert verdict.primary is not None
        assert "without any fault, too" in verdict.primary.sentence
        assert "most likely" not in verdict.primary.sentence
    assert [str(cause) for cause in causes] == ["result-equal / inexact-resume"]


def test_the_root_cause_is_where_the_fault_struck():
    """Violations are grouped by the operation, the file's kind and the error."""
    tale = killed_in_save_4().closes().fails(MISSING)
    cause = root_cause(tale.journal(), tale.verdict())
    assert str(cause) == "newest-complete / persist write out:ckpt-#.pt / FileNotFoundError"


def test_the_explanation_tells_what_was_owed():
    """For a person: what lay there, what was required and why, and what could not be judged with which option."""
    text = killed_in_save_4(judged=("checkpoints", "resumed", "resumes", "saved")).closes().fails(MISSING).explained()
    assert "found complete: step 2" in text
    assert "found torn: step 4" in text
    assert "required: step 2, which it had said was saved" in text
    assert "result-equal was not judged" in text
    assert "--result" in text
    assert "Verdict: VIOLATION" in text
