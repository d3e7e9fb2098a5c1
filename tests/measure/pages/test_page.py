"""The page of a measurement: whole in itself, safe, readable in light and dark, and the same each time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from chaosckpt.measure.pages.page import measurement_page, plots
from chaosckpt.measure.pages.sections import headlines
from tests.measure.pages.measurements import ALONE, BARE, FULL

LOADS = {
    "script",
    "link",
    "img",
    "iframe",
    "object",
    "embed",
    "base",
    "form",
    "video",
    "audio",
    "source",
    "track",
    "image",
    "a",
}
VOID = {"meta", "br", "hr", "input"}
REFERENCES = {"href", "src", "srcset", "action", "data", "poster", "xlink:href", "formaction", "background", "ping"}


class Page(HTMLParser):
    """Tags must nest; keeps ids, references and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in REFERENCES:
                self.references.append(value)
            if name.startswith("on"):
                self.handlers.append(name)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def full() -> str:
    return measurement_page(FULL)


@pytest.fixture(scope="module")
def bare() -> str:
    return measurement_page(BARE)


def test_nothing_is_loaded_from_elsewhere(full, bare):
    """No tag loads anything, every reference stays within the page, and no style imports or names another place."""
    for text in (full, bare):
        page = Page(text)
        assert not page.tags & LOADS
        assert not page.handlers
        assert all(reference.startswith("#") for reference in page.references)
        assert not re.findall(r"url\((?!#)", text)
        assert "@import" not in text
        assert "default-src 'none'" in text


def test_references_lead_somewhere(full):
    """Ids are there once, and whatever is referred to is there."""
    page = Page(full)
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r"url\(#([^)]+)\)", full)) | {reference[1:] for reference in page.references} <= set(page.ids)


def test_the_eight_figures_lead(full, bare):
    """Each of the eight figures stands on the page before the first plot and the first table."""
    for text, measurement in ((full, FULL), (bare, BARE)):
        top = text[text.index("<dl") : text.index("</dl>")]
        assert top.count('class="value"') == 8
        for figure in headlines(measurement):
            assert figure.name in top
            assert figure.value in top


def test_plots_of_what_was_measured(full, bare):
    """The interval and the ranks are always drawn, backlog, scale and contention where they were measured; each is told in words."""
    assert full.count("<svg") == 5
    assert bare.count("<svg") == 2
    assert full.count('role="img" aria-label=') == 5
    for words in (
        "expected overhead (%)",
        "rank 1",
        "unfinished saves",
        "ranks × checkpoint size",
        "2 beside",
        "advised: ",
    ):
        assert words in full


def test_contention_is_drawn_from_what_its_ratio_is_made_of():
    """The bar of saves alone and the ratio in the sentence are of the same saves, whatever the other figures were."""
    drawn = plots(FULL)[-1]
    assert (
        drawn.sentence
        == "Beside 2 neighbours a save takes 2.5 times as long as alone just before (6.25 s against 2.5 s)."
    )
    other = replace(FULL.figures[0], completion_seconds=replace(ALONE, samples=(9.0, 9.5)))
    assert plots(replace(FULL, figures=(other,)))[-1] == drawn
    slower = tuple(replace(entry, alone_seconds=other.completion_seconds) for entry in FULL.contention)
    assert plots(replace(FULL, contention=slower))[-1].svg != drawn.svg


def test_a_limited_interval_is_told():
    """Where a limit keeps the interval from its optimum, the words beside the curve say so."""
    advice = replace(FULL.advice, optimum_seconds=FULL.advice.seconds / 2)
    assert "limits keep the interval from the optimum at 3 min" in measurement_page(replace(BARE, advice=advice))


def test_light_and_dark(full):
    """Letters and axes have the page's colour, which follows the reader's scheme."""
    assert "prefers-color-scheme: dark" in full
    svg = full[full.index("<svg") : full.rindex("</svg>")]
    assert "currentColor" in svg
    assert "#123456" not in svg
    assert not re.search(r"fill: (#000000|black|#ffffff|white)", svg)


def test_names_are_escaped():
    """A scenario, a path or a note with markup in it is shown, never obeyed."""
    evil = '<script>alert("1")</script>&amp;'
    text = measurement_page(replace(BARE, scenario=evil, target=evil, notes=(evil,), failure_boundary=evil))
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(") >= 4
    assert evil in Page(text).text


def test_the_same_measurement_gives_the_same_page(full, tmp_path):
    """Another process, with another hash seed, matplotlibrc and no display, writes the same page."""
    (tmp_path / "matplotlibrc").write_text("font.size: 30\naxes.grid: False\nbackend: tkagg\n")
    code = (
        "import sys\n"
        "from chaosckpt.measure.pages.page import measurement_page\n"
        "from tests.measure.pages.measurements import FULL\n"
        "sys.stdout.buffer.write(measurement_page(FULL).encode())"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "77",
        "MPLCONFIGDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    environment.pop("DISPLAY", None)
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, cwd=tmp_path)
    assert found.stdout.decode() == full


def test_importing_the_report_imports_no_plots():
    """matplotlib and jinja2 are imported when a page is written, not before: every command would be slower."""
    code = (
        "import sys\nimport chaosckpt.measure.pages.page, chaosckpt.measure.pages.text, chaosckpt.measure.comparison\n"
        "assert not {'matplotlib', 'jinja2', 'torch', 'hypothesis', 'ray'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True
    )
