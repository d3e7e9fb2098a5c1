"""Progress of a running campaign: a live block on a terminal, and a plain line every so many trials anywhere else."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from chaosckpt.model.phrasing import plural
from chaosckpt.model.summary import Progress
from chaosckpt.report.text import percent

Watch = Callable[[Progress], None]
LINES = 20
"""About how many plain lines a campaign with a budget of trials prints."""
EVERY = 25
"""Trials between two plain lines when the budget is a time."""
BAR_CELLS = 24
QUIET_SECONDS = 10.0
"""After so long without a plain line there is another while something is done that is no trial: a golden run, shrinking."""
QUIET_TRIALS_SECONDS = 60.0
"""The same while trials run."""
SHORT_SECONDS = 5.0
"""What takes less is shown without its time."""


@contextmanager
def display(console: Console, live: bool) -> Iterator[Watch]:
    """Show progress on `console` while the block runs. Call the yielded function with each new state."""
    if live:
        shown = LiveBlock()
        with Live(shown, console=console, refresh_per_second=2, transient=True) as screen:

            def watch(progress: Progress) -> None:
                shown.show(progress)
                screen.refresh()

            yield watch
        return
    lines, ended = PlainLines(console), threading.Event()

    def tick() -> None:
        while not ended.wait(1.0):
            lines.tick()

    ticking = threading.Thread(target=tick, name="progress", daemon=True)
    ticking.start()
    try:
        yield lines
    finally:
        ended.set()
        ticking.join()


class Activity:
    """For how long the same has been done. Counts within it may change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self.key = ""

    def turn(self, progress: Progress) -> bool:
        """Note what is done now; whether it is something else than before."""
        key = f"{progress.phase} {_doing(progress)}"
        if key == self.key:
            return False
        self.key, self._since = key, self._clock()
        return True

    def seconds(self) -> float:
        return self._clock() - self._since


def _doing(progress: Progress) -> str:
    """What is done apart from trials, without its counts."""
    return re.sub(r"\d+", "#", progress.message if progress.phase == "prepare" else progress.activity)


class LiveBlock:
    """The live block with the time that goes on between two states."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._activity = Activity(clock)
        self._progress: Progress | None = None

    def show(self, progress: Progress) -> None:
        """Show this state from now on."""
        self._activity.turn(progress)
        self._progress = progress

    def __rich__(self) -> Text:
        return Text() if self._progress is None else block(self._progress, self._activity.seconds())


class PlainLines:
    """Prints a line when something else is done, when there is a new finding, every so many trials, and after a silence."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._activity = Activity(clock)
        self._lock = threading.Lock()
        self._last: Progress | None = None
        self._shown: Progress | None = None
        self._shown_at = clock()

    def __call__(self, progress: Progress) -> None:
        """Print the line of this state if one is due."""
        with self._lock:
            self._last = progress
            if self._due(progress, self._activity.turn(progress)):
                self._print(progress)

    def tick(self) -> None:
        """Print the last state again, with its time, if there has been none for long."""
        with self._lock:
            if self._last is not None and self._silent(self._last):
                self._print(self._last)

    def _print(self, progress: Progress) -> None:
        self._shown, self._shown_at = progress, self._clock()
        self._console.print(line(progress, self._activity.seconds()), soft_wrap=True, markup=False)

    def _silent(self, progress: Progress) -> bool:
        longest = QUIET_SECONDS if progress.phase == "prepare" or progress.activity else QUIET_TRIALS_SECONDS
        return self._clock() - self._shown_at >= longest

    def _due(self, progress: Progress, turned: bool) -> bool:
        shown = self._shown
        if shown is None or shown.phase != progress.phase or shown.findings != progress.findings:
            return True
        if (turned and _doing(progress)) or self._silent(progress):
            return True
        step = max(1, progress.trials_budget // LINES) if progress.trials_budget else EVERY
        return progress.trials // step > shown.trials // step


def line(progress: Progress, seconds: float = 0.0) -> str:
    """One line without colour. `seconds`: for how long the same has been done."""
    if progress.phase == "prepare":
        return f"preparing: {progress.message or 'golden runs'}{_taking(seconds)}"
    trials = (
        plural(progress.trials, "trial")
        if progress.trials_budget is None
        else f"{progress.trials}/{progress.trials_budget} trials"
    )
    parts = [trials, f"{progress.rate_per_minute:.0f}/min", _coverage(progress), plural(progress.findings, "finding")]
    if progress.inconclusive:
        parts.append(f"{progress.inconclusive} inconclusive")
    if progress.seconds_left is not None:
        parts.append(f"{duration(progress.seconds_left)} left")
    if progress.activity:
        parts.append(progress.activity + _taking(seconds))
    if progress.message:
        parts.append(progress.message)
    return ", ".join(parts)


def _taking(seconds: float) -> str:
    return f" (for {duration(seconds)})" if seconds >= SHORT_SECONDS else ""


def block(progress: Progress, seconds: float = 0.0) -> Text:
    """The live block: a bar if the number of trials is limited, the counts, and the current activity with its `seconds`."""
    text = Text()
    if progress.phase == "prepare":
        return text.append(line(progress, seconds))
    if progress.trials_budget:
        done = min(BAR_CELLS, BAR_CELLS * progress.trials // progress.trials_budget)
        text.append("█" * done, style="cyan").append("░" * (BAR_CELLS - done), style="dim")
        text.append(f" {progress.trials}/{progress.trials_budget} trials")
    else:
        text.append(plural(progress.trials, "trial"))
    text.append(f"  {progress.rate_per_minute:.0f}/min  {_coverage(progress)}  ")
    text.append(plural(progress.findings, "finding"), style="bold red" if progress.findings else "green")
    text.append(f"  {progress.inconclusive} inconclusive", style="yellow" if progress.inconclusive else "dim")
    if progress.seconds_left is not None:
        text.append(f"  {duration(progress.seconds_left)} left", style="dim")
    if progress.activity:
        text.append(f"\n{progress.activity}{_taking(seconds)}", style="dim")
    if progress.message:
        text.append(f"\n{progress.message}", style="dim")
    return text


def _coverage(progress: Progress) -> str:
    return f"{progress.hit}/{progress.total} points ({percent(progress.hit, progress.total)})"


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s`, `7 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
