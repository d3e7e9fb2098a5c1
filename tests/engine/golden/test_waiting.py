"""What is told of a golden run that stands still."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from chaosckpt.engine.golden.waiting import Waiting
from chaosckpt.engine.runner.ranks import Ranks
from chaosckpt.engine.wire.requests import CommandOutput


def node(waits: str, *refused: str) -> SimpleNamespace:
    return SimpleNamespace(describe=lambda threads: [waits], output=lambda: CommandOutput(refused=refused))


def test_a_run_that_stands_still_says_what_it_waits_for_and_what_it_was_refused() -> None:
    """Goal: whoever waits for a golden run that waits for another machine reads so, long before its deadline."""
    told: list[str] = []
    waiting = Waiting("a golden run", told.append)
    nodes = [node("rank 0: python, in recvfrom", "connection to 198.51.100.7"), node("rank 1: python, in futex")]
    waiting.quiet(15.2, cast(Ranks, SimpleNamespace(nodes=nodes)))
    assert told == [
        "a golden run: no storage operation for 15 s; rank 0: python, in recvfrom; rank 1: python, in futex; "
        "chaosckpt refused: connection to 198.51.100.7"
    ]
    assert told[0].endswith(waiting.last)
