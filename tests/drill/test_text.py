"""The certificate on a terminal: boundaries first, then every step, and one line at the end."""

from __future__ import annotations

from chaosckpt.drill.pages import certificate_text, headline
from tests.drill.drill_journals import restored, saved
from tests.drill.test_certification import of
from tests.drill.test_steps import without_optimizer


def test_it_has_every_boundary_and_every_step():
    """Nothing that the certificate knows of a boundary or a step's sentence is left out."""
    found = of(restored(saved()), files=2)
    shown = certificate_text(found).plain
    for boundary in found.boundaries:
        assert boundary.name in shown
        assert boundary.outcome in shown
    for step in found.steps:
        assert step.sentence in shown
    assert shown.endswith("all 5 requested steps held")


def test_the_last_line_names_the_first_step_that_did_not_hold():
    """With its outcome, and how many did."""
    found = of(restored(saved(), but=without_optimizer))
    assert headline(found) == "step 3 (restore and verify) did not hold: failed; 3 of 5 requested steps held"
    assert "optimizer of rank 0: saved" in certificate_text(found).plain
