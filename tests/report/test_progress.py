"""Progress on a terminal and in a log."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from chaosckpt.model.summary import Progress
from chaosckpt.report.progress import PlainLines, block, display, duration, line

SEARCH = Progress(phase="search", trials=30, trials_budget=100, rate_per_minute=150, hit=5, total=50)


def lines_for(states: list[Progress]) -> list[str]:
    stream = io.StringIO()
    with display(Console(file=stream, width=60), live=False) as watch:
        for state in states:
            watch(state)
    return stream.getvalue().splitlines()


def test_plain_lines_are_throttled_by_trials():
    """1,000 states of a campaign of 1,000 trials become about 20 lines, however fast they come."""
    states = [msgspec.structs.replace(SEARCH, trials=number, trials_budget=1000) for number in range(1000)]
    assert len(lines_for(states)) == 20


def test_plain_lines_without_a_budget_of_trials():
    """A campaign with a time budget prints a line every 25 trials."""
    states = [msgspec.structs.replace(SEARCH, trials=number, trials_budget=None) for number in range(100)]
    assert len(lines_for(states)) == 4


def test_a_new_finding_is_shown_at_once():
    """A finding or a new phase isn't held back by the throttle."""
    states = [
        SEARCH,
        msgspec.structs.replace(SEARCH, findings=1),
        msgspec.structs.replace(SEARCH, findings=1, phase="finish"),
    ]
    assert len(lines_for(states)) == 3


def test_lines_are_whole_and_plain():
    """One state is one line without control characters, however narrow the console and whatever the message."""
    state = msgspec.structs.replace(SEARCH, message="[red]a message with brackets[/red] " + "x" * 100, seconds_left=65)
    (shown,) = lines_for([state])
    assert shown.startswith("30/100 trials, 150/min, 5/50 points (10 %), 0 findings, 1 min 05 s left, [red]a message")
    assert "\x1b" not in shown


def test_preparation_has_its_own_line():
    """While golden runs are made there are no counts to show."""
    preparing = Progress(phase="prepare", message="golden run 1+1")
    assert line(preparing) == block(preparing).plain == "preparing: golden run 1+1"


def test_the_block_shows_a_bar_and_all_counts():
    """The live block has trials, rate, coverage, findings and the time left."""
    text = block(msgspec.structs.replace(SEARCH, findings=2, inconclusive=1, seconds_left=4000)).plain
    assert text.startswith("███████░")
    for part in ("30/100 trials", "150/min", "5/50 points", "2 findings", "1 inconclusive", "1 h 06 min left"):
        assert part in text


def test_live_display_leaves_the_terminal_as_it_was():
    """On a terminal the block is redrawn in place, and removed at the end."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with display(console, live=True) as watch:
        watch(SEARCH)
        watch(msgspec.structs.replace(SEARCH, trials=31))
    assert "30/100" in stream.getvalue()
    assert "31/100" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-1, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (25500, "7 h 05 min")]
)
def test_durations(seconds, expected):
    """Two units at most."""
    assert duration(seconds) == expected


def test_a_silence_is_broken_and_says_for_how_long():
    """Off a terminal each part of the preparation is said once, and again every so often while it lasts; counts make no new line."""
    stream, now = io.StringIO(), [0.0]
    lines = PlainLines(Console(file=stream, width=60), clock=lambda: now[0])
    for second in range(26):
        now[0] = float(second)
        lines(Progress(phase="prepare", message=f"recovery after every operation: {second} of 40"))
        lines.tick()
    lines(Progress(phase="prepare", message="golden recoveries"))
    now[0] = 40.0
    lines.tick()
    assert stream.getvalue().splitlines() == [
        "preparing: recovery after every operation: 0 of 40",
        "preparing: recovery after every operation: 10 of 40 (for 10 s)",
        "preparing: recovery after every operation: 20 of 40 (for 20 s)",
        "preparing: golden recoveries",
        "preparing: golden recoveries (for 15 s)",
    ]


def test_what_is_done_with_a_finding_is_shown_in_both_ways():
    """While trials stand still because a finding is shrunk, line and block say how far that is, and for how long."""
    state = msgspec.structs.replace(
        SEARCH, activity="violation of trial 1:3: shrinking its schedule, trial 4 of at most 60"
    )
    for text in (line(state, 21.0), block(state, 21.0).plain):
        assert "trial 4 of at most 60 (for 21 s)" in text
    assert len(lines_for([SEARCH, state, SEARCH])) == 2
