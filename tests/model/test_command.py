"""A command's words: what stands in place of `{out}` and `{nproc}`, and what is added to resume."""

from __future__ import annotations

from chaosckpt.model.scenario import CommandSettings


def test_words_of_a_launch():
    """{out} and {nproc} are replaced wherever they stand, and what it needs to resume is added only then."""
    command = CommandSettings(
        argv=("torchrun", "--nproc-per-node={nproc}", "t.py", "{out}/a"), resume_argv=("--from", "{out}/last")
    )
    assert command.words("/o", 2) == ("torchrun", "--nproc-per-node=2", "t.py", "/o/a")
    assert command.words("/o", 1, resuming=True)[-3:] == ("/o/a", "--from", "/o/last")


def test_other_braces_stay():
    """What only looks like a place to fill in is the command's own."""
    command = CommandSettings(argv=("python", "-c", "print({out!r}, {})", "{out}"))
    assert command.words("/o", 1) == ("python", "-c", "print({out!r}, {})", "/o")
