from __future__ import annotations

import pytest

from chaosckpt.oracle.facts.failures import names_its_subject
from tests.oracle.command_journals import killed_in_save_4

NAMED = [
    "[Errno 2] No such file or directory: '/scratch/shared/step-000004/.metadata'",
    "failed loading shared/step-000002: rank 1: EOFError: Ran out of input",
    "no complete checkpoint in the shared storage",
    "Checkpoint of step 4 is not complete",
    "latest.pt is missing",
    "CheckpointException ranks:dict_keys([0])\nTraceback (most recent call last): (RANK 0)\n"
    "  File \"/lib/python3.11/site-packages/torch/x.py\", line 3, in f\nFileNotFoundError: '/a/b/.metadata'",
]
UNNAMED = [
    "",
    "Ran out of input",
    "'NoneType' object has no attribute 'load_state_dict'",
    "max() arg is an empty sequence",
    "no checkpoint found",
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\nKeyError: 3',
    "error in /home/me/train.py",
    "[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:258",
    "see: https://pytorch.org/docs/stable/elastic/errors.html",
]


@pytest.mark.parametrize("text", NAMED)
def test_named(text: str) -> None:
    """An error with a path, a file's name or a checkpoint with its place tells what was looked for."""
    assert names_its_subject(text)


@pytest.mark.parametrize("text", UNNAMED)
def test_unnamed(text: str) -> None:
    """An accidental error, or a traceback through code, doesn't."""
    assert not names_its_subject(text)


@pytest.mark.parametrize(
    ("tail", "signal", "words"),
    [
        ("RuntimeError: [Errno 98] Address already in use", None, "Address already in use"),
        ("OSError: [Errno 28] No space left on device: '/x/ckpt-2'", None, "No space left"),
        ("", 9, "killed it"),
    ],
)
def test_trouble_of_the_machine(tail, signal, words):
    """A launch that the machine failed is no finding, and no pass."""
    trial = killed_in_save_4().attempt(closing=True).fails(tail, code=None if signal else 1, signal=signal)
    verdict = trial.verdict()
    assert verdict.outcome == "inconclusive"
    assert words in verdict.reason


@pytest.mark.parametrize(
    "said", ["FileNotFoundError: [Errno 2] No such file or directory: ", "python: can't open file "]
)
def test_a_script_that_is_removed_while_the_campaign_runs(said):
    """That there is no script to launch any more is no violation, and no pass."""
    trial = killed_in_save_4()
    assert trial.scenario.command is not None
    script = next(word for word in trial.scenario.command.argv if word.endswith(".py"))
    verdict = trial.attempt(closing=True).fails(f"{said}'/home/u/{script}'").verdict()
    assert verdict.outcome == "inconclusive"
    assert f"{script} no longer exists" in verdict.reason


def test_what_the_guard_refused_only_in_a_recovery():
    """A launch that failed because it was refused what the golden runs never asked for is in doubt, and the option is named."""
    verdict = (
        killed_in_save_4()
        .attempt(closing=True)
        .refused()
        .fails("PermissionError: [Errno 1] '/home/u/.cache'")
        .verdict()
    )
    assert verdict.outcome == "inconclusive"
    assert "--allow" in verdict.reason
