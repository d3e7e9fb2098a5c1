"""The subject: what a campaign, a trial, a replay or a drill asks of what it tests, whichever kind of subject that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from chaosckpt.engine.golden.command_facts import CommandFacts
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.ranks import Record
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.sources import Sources
from chaosckpt.errors import UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.summary import TrainingSeen
from chaosckpt.model.topology import Topology

Launch = Literal["fork", "exec"]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What golden runs have shown of a subject. `modules` are what its ranks import, so that further nodes needn't find that out."""

    census: Census
    modules: tuple[str, ...] = ()
    gate: str = "seccomp"
    launch: Launch = "fork"
    facts: CommandFacts | None = None
    """Of a command: what is known beside the census."""
    remarks: tuple[str, ...] = ()
    """What can't be judged, and why, in sentences."""
    code: str = ""
    """A digest of the code that it was prepared with, where it was kept: Sources.digest."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a trial that has ended. `previous` is the topology of the one before; `closing`: the last one, without faults."""

    order: AttemptOrder
    topology: Topology
    previous: Topology
    faults: tuple[Fault, ...]
    outcome: j.AttemptOutcome
    closing: bool

    @property
    def number(self) -> int:
        return self.order.attempt


class SubjectTrial(ABC):
    """What a subject knows, and observes, within one trial. Made anew for each, when storage has been emptied."""

    def __init__(self, record: Record) -> None:
        self._record = record

    @abstractmethod
    def order(self, number: int, topology: Topology, faults: Sequence[Fault]) -> AttemptOrder:
        """How the next attempt is launched: whether it resumes something, on how many ranks, and what they run."""

    def recorder(self, topology: Topology) -> Record:
        """What takes the events of the next attempt while it runs."""
        return self._record

    @abstractmethod
    def after(self, attempt: Ended) -> None:
        """Record what shows only when the attempt has ended, with storage as that left it."""

    @abstractmethod
    def end(self, last: int) -> None:
        """Record what the whole trial has left behind; `last` is the number of its last attempt."""


class Subject(ABC):
    """What is tested, by its scenario. Where golden runs have told more of it than the user did, `scenario` has that, too."""

    spreads: ClassVar[bool]
    """Whether its nodes can be spread over a cluster; else all arenas are on this machine."""
    cached: ClassVar[bool]
    """Whether all that its golden runs depend on is known, so that those of an equal scenario hold again."""
    only_for_targets: ClassVar[Mapping[str, str]] = {}
    """What can't be done with it, by the name of the command: the sentence for that, about the scenario `{name}`."""

    def __init__(self, scenario: Scenario, prepared: Prepared | None) -> None:
        self.scenario = scenario
        self.prepared = prepared

    @property
    def modules(self) -> tuple[str, ...]:
        """What its ranks import, as far as it is known."""
        return () if self.prepared is None else self.prepared.modules

    @property
    @abstractmethod
    def needs_golden_runs(self) -> bool:
        """Whether even a schedule whose census is stored can't be run without golden runs of now."""

    @abstractmethod
    def sources(self, modules: Sequence[str] = ()) -> Sources:
        """The local files and the installed packages that it imports, as far as its own files and these `modules` tell."""

    @abstractmethod
    def open_arena(self) -> Arena:
        """An arena on this machine, warm as far as it is known how."""

    def as_launched(self) -> tuple[Subject, Deadlines] | None:
        """The same subject, launched as its user launches it, and how long that may take; None where its ranks always are."""
        return None

    @property
    def launcher(self) -> str:
        """What starts its ranks when its user runs it, in a word; empty where that is chaosckpt itself."""
        return ""

    @property
    def training_seen(self) -> TrainingSeen:
        """What an observer has shown of it; a target reports all of that itself."""
        return TrainingSeen()

    def workers(self, wanted: int) -> tuple[int, str]:
        """How many trials of it can run side by side on one machine, of so many wanted; and why not all, in a sentence."""
        return wanted, ""

    @abstractmethod
    def golden_runs(self, progress: Callable[[str], None]) -> Prepared:
        """Run it without faults, on an arena of its own, in every topology. Raises UsageError when it doesn't end well."""

    @abstractmethod
    def kinds(self) -> dict[str, type[Fault]]:
        """Every installed kind of fault that fits, by name."""

    @abstractmethod
    def launch(self) -> Launch:
        """How its ranks are started."""

    @abstractmethod
    def started(self, trial: str, schedule: Schedule, arena: Arena) -> j.TrialStarted:
        """The first event of a trial: what is going to be done, and what the subject is held to."""

    @abstractmethod
    def trial(self, arena: Arena, deadlines: Deadlines, record: Record, events: Sequence[j.AnyEvent]) -> SubjectTrial:
        """One trial on this arena, whose storage is empty. `events` are those recorded so far, and grow."""

    def require_target(self, what: Literal["drill", "measure"]) -> None:
        """Raise UsageError, with the next step, where this can be done to a target only, and the subject is none."""
        if (refusal := self.only_for_targets.get(what)) is not None:
            raise UsageError(refusal.format(name=self.scenario.name))
