"""Progress of a running campaign: a live block on a terminal, and a plain line every so many trials anywhere else."""

from __future__ import annotations

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


@contextmanager
def display(console: Console, live: bool) -> Iterator[Watch]:
    """Show progress on `console` while the block runs. Call the yielded function with each new state."""
    if not live:
        yield PlainLines(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as screen:

        def watch(progress: Progress) -> None:
            screen.update(block(progress), refresh=True)

        yield watch


class PlainLines:
    """Prints a line when the phase changes, when there is a new finding, and every so many trials."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Print the line of this state if one is due."""
        if self._due(progress):
            self._shown = progress
            self._console.print(line(progress), soft_wrap=True, markup=False)

    def _due(self, progress: Progress) -> bool:
        shown = self._shown
        if shown is None or shown.phase != progress.phase or shown.findings != progress.findings:
            return True
        step = max(1, progress.trials_budget // LINES) if progress.trials_budget else EVERY
        return progress.trials // step > shown.trials // step


def line(progress: Progress) -> str:
    """One line without colour."""
    if progress.phase == "prepare":
        return f"preparing: {progress.message or 'golden runs'}"
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
    if progress.message:
        parts.append(progress.message)
    return ", ".join(parts)


def block(progress: Progress) -> Text:
    """The live block: a bar if the number of trials is limited, the counts, and the current activity."""
    text = Text()
    if progress.phase == "prepare":
        return text.append(f"preparing: {progress.message or 'golden runs'}")
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
