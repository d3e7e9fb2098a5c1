"""What a campaign has to say at its end, and while it runs: counts, coverage and findings, without any way to show them."""

from __future__ import annotations

from typing import Literal

import msgspec

INCONCLUSIVE_SHARE = 0.2
"""The default of `--max-inconclusive`: the share of trials above which a campaign is no evidence (exit code 3)."""


class StageCoverage(msgspec.Struct, frozen=True):
    """Single-fault points of one stage: how many were hit with evidence, of how many in the census."""

    hit: int
    total: int


class Coverage(msgspec.Struct, frozen=True):
    """Single-fault points of the census hit with evidence: all, and by stage in the order in which stages happen."""

    hit: int = 0
    total: int = 0
    by_stage: dict[str, StageCoverage] = {}


class Restarts(msgspec.Struct, frozen=True, kw_only=True):
    """Plain restarts of a command, each from another save, without any fault: how many went on, and how many of them differ from the
    uninterrupted run, in which parts."""

    tried: int = 0
    differing: int = 0
    parts: tuple[str, ...] = ()


class TrainingSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What an observer has seen of a command's training. `unjudged` are the parts that are not compared, each with the reason."""

    observer: str | None = None
    restarts: Restarts = Restarts()
    unjudged: dict[str, str] = {}


class FindingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One finding as a campaign's summary names it. `faults` are the shrunk faults in words, `reproduced` reads "10/10".

    `command` reproduces it from the directory in which the campaign was started; `path` is the finding's folder. `trials` are the
    names of the first trials that showed it.
    """

    id: str
    invariant: str
    root_cause: str
    count: int
    faults: tuple[str, ...]
    reproduced: str
    path: str
    sentence: str = ""
    command: str = ""
    trials: tuple[str, ...] = ()
    confirmed_cold: bool | None = None
    """Whether it showed, too, when a command was launched by its own launcher; null where chaosckpt launches in no other way."""
    also: tuple[str, ...] = ()
    """What else the same shrunk faults lead to, each with its id, and with a folder of its own."""
    interrupted: bool = False
    """The campaign was stopped before this finding was shrunk and replayed to the end; `--resume` does it anew."""


class CampaignSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a campaign; `fuzz --json` prints exactly this object.

    `trials` = `passed` + `violations` + `inconclusive`. `singles` and `multis` count trials by how they were drawn: a point of the
    census, or a schedule of several faults. `trials_by_attempts` and `trials_by_faults` map a number (as a string, as JSON has it) to a
    count. `rate_per_minute` is measured over the search, without the golden runs.
    """

    trials: int
    passed: int
    violations: int
    inconclusive: int
    rate_per_minute: float
    coverage: Coverage
    run: str
    findings: tuple[FindingSummary, ...] = ()
    singles: int = 0
    multis: int = 0
    trials_by_attempts: dict[str, int] = {}
    trials_by_faults: dict[str, int] = {}
    trials_by_topologies: dict[str, int] = {}
    """How many trials used 1, 2, … different topologies."""
    recovery_faults: int = 0
    """Trials with a fault that struck a recovery."""
    inconclusive_reasons: dict[str, int] = {}
    gaps: dict[str, int] = {}
    """What trials ought to have judged and could not, with the reason, and in how many."""
    refused: dict[str, int] = {}
    """What the job tried and was not let do, in sentences, and in how many trials."""
    scenario: str = ""
    seed: int = 0
    gate: str = "seccomp"
    """`none` where faults could only strike at stage boundaries."""
    launch: str = "fork"
    """How ranks were started: `fork` of a warm interpreter, or `exec` of a new one."""
    launcher: str = ""
    """What starts the ranks of a command when its user runs it, such as `torchrun`; empty for a target."""
    observer: str | None = None
    """What saw the ranks of a command train, such as `torch`; null where nothing did, and for a target."""
    unjudged: dict[str, str] = {}
    """The parts of a command's state that are not compared, each with the reason; `all` where no step could be told."""
    restarts: Restarts = Restarts()
    """Plain restarts of a command before the first fault."""
    interrupted: bool = False
    prefixes: int = 0
    """On the storage of the fault-free run, as it was after so many of its operations, recovery was tried."""
    recovery_gaps: tuple[str, ...] = ()
    """Those of the operations after which it found less than the newest finished save, in words."""
    remarks: tuple[str, ...] = ()
    """Of a command: what could not be judged, or was guessed, in sentences."""
    harness_troubles: int = 0
    """Trials, among the inconclusive ones, in which the harness itself failed even after its retries."""
    max_inconclusive: float = INCONCLUSIVE_SHARE

    @property
    def exit_code(self) -> int:
        """0 clean, 1 violations, 130 interrupted before any, 3 harness trouble, no trial, or too many inconclusive ones."""
        if self.findings or self.violations:
            return 1
        if self.interrupted:
            return 130
        if self.trials == 0 or self.harness_troubles > 0:
            return 3
        return 3 if self.inconclusive > self.max_inconclusive * self.trials else 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running campaign stands. `trials_budget` or `seconds_left` is None where the campaign has no such budget."""

    phase: Literal["prepare", "search", "finish"]
    trials: int = 0
    trials_budget: int | None = None
    rate_per_minute: float = 0.0
    hit: int = 0
    total: int = 0
    findings: int = 0
    violations: int = 0
    inconclusive: int = 0
    seconds_left: float | None = None
    message: str = ""
    """What is prepared at the moment, or what has just been found; one line."""
    activity: str = ""
    """What a worker does that is no trial of the search: how far it has come with a finding."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One replay of a trial: what the oracle said of it, and whether it shows the expected violation again."""

    number: int
    outcome: Literal["pass", "violation", "inconclusive"]
    same: bool
    sentence: str = ""


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `chaosckpt reproduce`: how many replays of how many showed the violation again.

    `differences` are sentences about what isn't as it was when the finding was made: versions, or the census. `expected` is the
    sentence stored with the finding; empty for a trial by name.
    """

    trial: str
    faults: tuple[str, ...]
    replays: tuple[Replay, ...]
    expected: str = ""
    differences: tuple[str, ...] = ()

    @property
    def reproduced(self) -> int:
        return sum(replay.same for replay in self.replays)

    @property
    def exit_code(self) -> int:
        """1 while some replay shows a violation, 0 when all pass, 3 when no replay could be judged."""
        if any(replay.outcome == "violation" for replay in self.replays):
            return 1
        return 0 if any(replay.outcome == "pass" for replay in self.replays) else 3
