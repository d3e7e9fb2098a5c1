"""A measurement as one page of HTML that needs nothing else: no network, no script, no file beside it."""

from __future__ import annotations

from chaosckpt.measure.measurement import Measurement
from chaosckpt.measure.pages.headlines import headlines, subtitle, surroundings, title
from chaosckpt.measure.pages.interval_text import interval_sections
from chaosckpt.measure.pages.plots import plots
from chaosckpt.measure.pages.tables import detail_sections

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
        sections=(*interval_sections(measurement.advice), *detail_sections(measurement)),
    )
