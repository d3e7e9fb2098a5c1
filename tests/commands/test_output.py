"""What a command printed, read by the user's expressions, whatever it was."""

from __future__ import annotations

import pytest

from chaosckpt.commands.output import matches


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step 12", 12),
        ("step ٣", 3),
        ("step ²", None),
        ("step " + "9" * 5000, None),
        ("step x\0\ufffd", None),
        ("step ", None),
    ],
)
def test_a_line_without_a_number_that_can_be_a_step(line: str, step: int | None) -> None:
    """Goal: nothing that a command prints where a number is expected ends the harness: it is a line without a step."""
    assert matches(f"before\n{line}\n", r"step (\S*)") == [(step, line[:300])]
