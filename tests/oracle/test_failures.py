from __future__ import annotations

import pytest

from chaosckpt.oracle.failures import names_its_subject

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
