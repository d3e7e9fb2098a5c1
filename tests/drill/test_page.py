"""The certificate as a page: whole, escaped, and readable without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec

from chaosckpt.drill.pages import certificate_page, certificate_text
from chaosckpt.measure.measurement import Provenance
from tests.drill.drill_journals import refused, restored, saved
from tests.drill.test_certification import of


class _Tags(HTMLParser):
    """Opened and closed elements, and the text between them."""

    void = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(page: str) -> _Tags:
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


def test_it_says_what_the_certificate_says():
    """Every boundary, every step's sentence and its evidence stand on the page, in well-formed HTML."""
    found = of(restored(saved()), files=2)
    text = re.sub(r"\s+", " ", read(certificate_page(found)).text)
    for boundary in found.boundaries:
        assert boundary.name in text
        assert boundary.sentence in text
    for step in found.steps:
        assert step.sentence in text
        for line in step.evidence:
            assert line in text


def test_it_needs_no_network_and_runs_no_script():
    """Nothing is loaded from anywhere."""
    page = certificate_page(of(restored(saved())))
    assert not {"script", "link", "img", "iframe", "object"} & read(page).names
    assert "http" not in page.replace("http-equiv", "")
    assert "url(" not in page
    assert """http-equiv="Content-Security-Policy" content="default-src 'none';""" in page


def test_a_narrow_window_scrolls_tables_only():
    """Each table scrolls in a box of its own, so that the page itself never gets wider than the window."""
    page = certificate_page(of(restored(saved()), files=2))
    assert page.count("<table>") == page.count('<div class="wide"><table>') > 4


def test_where_it_comes_from_and_nothing_that_is_gone():
    """Date, host and command stand on both; the temporary directories of the ranks ended with the drill, and are not named."""
    came = Provenance(date="2026-03-01T09:30:00+00:00", host="node17", command="chaosckpt drill dcp --html '<b>.html'")
    found = msgspec.structs.replace(of(restored(saved())), provenance=came)
    gone = {one.temporary for one in found.processes}
    for text in (read(certificate_page(found)).text, certificate_text(found).plain):
        for part in (came.date, came.host, came.command):
            assert part in text
        assert not [path for path in gone if path in text]


def test_what_a_target_says_is_escaped():
    """A message with markup in it is shown as it is, and is no markup of the page's."""
    message = "looked for <script>alert(1)</script> in /shared/step-*"
    page = certificate_page(of(refused(saved(), message=message)))
    assert "script" not in read(page).names
    assert message in read(page).text


def test_a_name_with_markup_is_escaped():
    """So is the scenario's name."""
    found = msgspec.structs.replace(of(restored(saved())), scenario="<b>bold</b>")
    assert "b" not in read(certificate_page(found)).names
