"""Subjects: what is tested. The engine asks here, and nowhere else, whether that is a target or a command."""

from __future__ import annotations

from chaosckpt.engine.subjects.base import Prepared, Subject
from chaosckpt.engine.subjects.command import CommandSubject
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.model.scenario import Scenario

__all__ = ["Prepared", "Subject", "subject_of"]


def subject_of(scenario: Scenario, prepared: Prepared | None = None) -> Subject:
    """The subject of a scenario, with what its golden runs have shown, where they are known."""
    if scenario.command is None:
        return TargetSubject(scenario, prepared)
    return CommandSubject(scenario, scenario.command, prepared)
