"""A measurement as one page of HTML that needs nothing else: its plots are SVG texts, the same for the same measurement."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaosckpt.measure.measurement import Backlog, IntervalAdvice, Measurement, ScalePoint, Spread
from chaosckpt.measure.pages.sections import headlines, subtitle, surroundings, title
from chaosckpt.measure.pages.tables import detail_sections
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text, digits, seconds_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SIZE = (7.2, 3.4)
"""Inches of 72 points."""
_BLUE, _ORANGE, _GREEN, _GREY = "#2a7fde", "#d9730d", "#2e9a57", "#8a8f98"
"""Read on a light page and on a dark one."""
_SETTINGS: dict[str, Any] = {
    # Ids in an SVG are hashes; with a salt of ours they are the same each time.
    "svg.hashsalt": "chaosckpt",
    # Letters stay text, in the page's own type and colour.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GREY,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
_INK = "#123456"
"""Stands for the colour of letters, which the page decides."""


@dataclass(frozen=True)
class Plot:
    """One drawing: its title, its SVG, and what it shows in a sentence, for those who don't see it."""

    title: str
    svg: str
    sentence: str


def plots(measurement: Measurement) -> tuple[Plot, ...]:
    """A plot for everything that was measured; matplotlib is imported here, and no display is needed."""
    drawn = [_interval(measurement.advice), _ranks(measurement)]
    if measurement.backlog is not None and measurement.backlog.timeline:
        drawn.append(_outstanding(measurement.backlog))
    if measurement.scale:
        drawn.append(_scale(measurement.scale))
    if measurement.contention:
        drawn.append(_contention(measurement))
    return tuple(drawn)


def _drawn(name: str, draw: Callable[[Axes], None]) -> str:
    """The SVG element of one pair of axes, without the XML prologue and without anything that leads to another place."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), _INK)
    with mpl.rc_context():
        mpl.rcdefaults()  # A matplotlibrc of whoever runs this would make another page of the same measurement.
        settings: Any = mpl.rcParams
        settings.update({**_SETTINGS, **colours})
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        stream = io.StringIO()
        # Without a date; none of the other fields says anything of the measurement.
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inlined(stream.getvalue(), name)


def _inlined(svg: str, name: str) -> str:
    """From `<svg` on, scaled to the page, in its letters' colour; ids begin with the plot's name, since a page has several."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'<svg ([^>]*?)\s?width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)\s?height="[^"]*"', r"<svg \1", svg, count=1)
    svg = svg.replace("xlink:href", "href").replace(_INK, "currentColor")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(href="|url\()#', rf"\1#{name}-", svg).strip()


_MARKS = (1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 10 * 86400, 100 * 86400, 1000 * 86400)
"""Seconds that a logarithmic axis of intervals is marked at."""
_FAR_APART = 50.0
"""Bars of which one is so many times as high as another stand on a logarithmic axis."""


def _in_seconds(axis: Any) -> None:
    """Marks as people read them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value)))
    axis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes) -> None:
    """Above the axes, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure: Any = axes.figure
    figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=9)


def _interval(advice: IntervalAdvice) -> Plot:
    chosen, percent = advice.seconds, 100 * advice.overhead

    def draw(axes: Axes) -> None:
        axes.plot(
            [interval for interval, _ in advice.curve],
            [100 * cost for _, cost in advice.curve],
            color=_BLUE,
            label="expected overhead",
        )
        low, high = advice.near_seconds
        axes.axvspan(low, high, color=_GREEN, alpha=0.15, linewidth=0, label="at most 5 % more")
        for limit in advice.limits:
            if limit.seconds:
                style = "--" if limit.bound == "at least" else ":"
                axes.axvline(
                    limit.seconds,
                    color=_ORANGE,
                    linestyle=style,
                    label=f"{limit.name}: {limit.bound} {seconds_text(limit.seconds)}",
                )
        axes.plot([chosen], [percent], "o", color=_GREEN, markersize=9, label=f"advised: {seconds_text(chosen)}")
        axes.set_xscale("log")
        ends = axes.get_xlim()
        axes.set_xticks(_MARKS)
        axes.set_xticks([], minor=True)
        axes.set_xlim(ends)
        _in_seconds(axes.xaxis)
        # The ends of the curve would flatten what lies between.
        axes.set_ylim(0, max(4 * percent, 1e-9))
        axes.set_xlabel("training between two saves")
        axes.set_ylabel("expected overhead (%)")
        _legend(axes)

    sentence = f"The expected overhead falls to {percent:.3g} % at {seconds_text(chosen)} and rises on both sides."
    if chosen != advice.optimum_seconds:
        sentence = (
            f"At {seconds_text(chosen)} the expected overhead is {percent:.3g} %; limits keep the interval from the optimum at "
            f"{seconds_text(advice.optimum_seconds)}."
        )
    return Plot("Expected overhead against the interval", _drawn("interval", draw), sentence)


def _bars(axes: Axes, names: Sequence[str], series: Sequence[tuple[str, str, Sequence[Spread | None]]]) -> None:
    """Groups of bars, medians with the range of samples; a figure that is missing leaves its place empty."""
    width = 0.8 / len(series)
    for number, (label, colour, spreads) in enumerate(series):
        found = [(place, spread) for place, spread in enumerate(spreads) if spread is not None]
        places = [place + (number - (len(series) - 1) / 2) * width for place, _ in found]
        heights = [spread.median for _, spread in found]
        errors = [
            [spread.median - spread.low for _, spread in found],
            [spread.high - spread.median for _, spread in found],
        ]
        axes.bar(
            places,
            heights,
            width * 0.9,
            yerr=errors,
            label=label,
            color=colour,
            error_kw={"ecolor": _GREY, "capsize": 3},
        )
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")
    medians = [spread.median for _, _, spreads in series for spread in spreads if spread is not None]
    if min(medians) > 0 and max(medians) > _FAR_APART * min(medians):
        axes.set_yscale("log")
    _in_seconds(axes.yaxis)
    if len(series) > 1:
        _legend(axes)


def _ranks(measurement: Measurement) -> Plot:
    figures = measurement.figures
    series: list[tuple[str, str, Sequence[Spread | None]]] = [
        ("stall", _ORANGE, [figure.stall_seconds for figure in figures]),
        ("completion", _BLUE, [figure.completion_seconds for figure in figures]),
    ]
    beside = [figure.completion_while_training_seconds for figure in figures]
    if any(beside):
        series.append(("completion while training", _GREEN, beside))

    def draw(axes: Axes) -> None:
        _bars(axes, [f"rank {figure.rank}" for figure in figures], series)

    sentence = (
        f"On the slowest rank a save stalls training for {seconds_text(measurement.stall_seconds.median)} and is complete after "
        f"{seconds_text(measurement.completion_seconds.median)}."
    )
    return Plot("Stall and completion by rank", _drawn("ranks", draw), sentence)


def _outstanding(backlog: Backlog) -> Plot:
    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        axes.step(
            [at.seconds for at in backlog.timeline], [at.saves for at in backlog.timeline], where="post", color=_BLUE
        )
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        _in_seconds(axes.xaxis)
        axes.set_xlabel("time since the first save")
        axes.set_ylabel("unfinished saves")

    most = plural(backlog.peak_outstanding, "save")
    sentence = f"With an interval of {seconds_text(backlog.interval_seconds)} at most {most} ran at the same time."
    return Plot("Outstanding saves at an interval shorter than a save", _drawn("outstanding", draw), sentence)


def _scale(points: Sequence[ScalePoint]) -> Plot:
    ordered = sorted(points, key=lambda point: (point.ranks, point.checkpoint_bytes))
    names = [f"{point.ranks}×\n{bytes_text(point.checkpoint_bytes)}" for point in ordered]

    def draw(axes: Axes) -> None:
        series: list[tuple[str, str, Sequence[Spread | None]]] = [
            ("stall", _ORANGE, [point.stall_seconds for point in ordered]),
            ("completion", _BLUE, [point.completion_seconds for point in ordered]),
            ("restart", _GREEN, [point.restart_seconds for point in ordered]),
        ]
        _bars(axes, names, series)
        axes.set_xlabel("ranks × checkpoint size")

    last = ordered[-1]
    sentence = (
        f"At {plural(last.ranks, 'rank')} and {bytes_text(last.checkpoint_bytes)} a save is complete after "
        f"{seconds_text(last.completion_seconds.median)} on the slowest rank."
    )
    return Plot("Scale: ranks and checkpoint size", _drawn("scale", draw), sentence)


def _contention(measurement: Measurement) -> Plot:
    worst = max(measurement.contention, key=lambda entry: entry.neighbours)
    # Of the saves that the ratios are made from, which aren't those of the other plots.
    alone = worst.alone_seconds
    names = ["alone, just before", *(f"{entry.neighbours} beside" for entry in measurement.contention)]
    spreads = [alone, *(entry.completion_seconds for entry in measurement.contention)]

    def draw(axes: Axes) -> None:
        _bars(axes, names, [("completion", _BLUE, spreads)])
        axes.set_xlabel("neighbours that write the same way")

    sentence = (
        f"Beside {plural(worst.neighbours, 'neighbour')} a save takes {digits(worst.ratio)} times as long as alone just before"
        f"{f' ({seconds_text(worst.completion_seconds.median)} against {seconds_text(alone.median)})' if alone else ''}."
    )
    return Plot("Contention", _drawn("contention", draw), sentence)


TEMPLATE = "measurement.html"


def measurement_page(measurement: Measurement) -> str:
    """The whole page: the eight figures, what they hold for, plots, and every detail. The same measurement gives the same page."""
    # jinja2 and matplotlib are slow to import, and most commands write no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("chaosckpt.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        title=title(measurement),
        subtitle=subtitle(measurement),
        figures=headlines(measurement),
        surroundings=surroundings(measurement),
        plots=plots(measurement),
        sections=tuple(detail_sections(measurement)),
    )
