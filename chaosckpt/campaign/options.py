"""What the command line asks of a campaign and of a reproduction, as plain values. A run directory keeps its campaign's."""

from __future__ import annotations

from pathlib import Path

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.model import formats
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.summary import INCONCLUSIVE_SHARE

DEFAULT_TRIALS = 300
FILE = "options.json"


class FuzzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign to run. The run directory `run` exists and is marked; with `resume` it holds the earlier part of the campaign.

    `trials` counts trials of the whole campaign, those of an interrupted part included; `seconds` is wall-clock time of this
    part, its golden runs included. At least one of the two is set; the first one exhausted ends the campaign. `workers` None means
    that the campaign chooses by the cluster's cores. `address` names a Ray cluster; None starts a local one.
    """

    scenario: Scenario
    run: str
    seed: int = 1
    trials: int | None = None
    seconds: float | None = None
    workers: int | None = None
    address: str | None = None
    resume: bool = False
    keep: bool = False
    """Keep a copy of the storage of every trial with a violation."""
    max_inconclusive: float = INCONCLUSIVE_SHARE

    @property
    def run_directory(self) -> Path:
        return Path(self.run)


class ReproduceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to replay, and how often: a finding's folder, or a trial `SEED:INDEX` of a scenario. Exactly one of the two is given."""

    times: int = 10
    finding: str | None = None
    scenario: Scenario | None = None
    trial: str | None = None


def store(options: FuzzOptions) -> None:
    """Write the options into their run directory, for the coordinator's process, for `--resume` and for `judge`."""
    content = msgspec.json.format(msgspec.json.encode(options), indent=2) + b"\n"
    temporary = options.run_directory / (FILE + ".new")
    temporary.write_bytes(content)
    temporary.replace(options.run_directory / FILE)


def load(run_directory: Path) -> FuzzOptions:
    """The options of a run, which may have been moved since. Raises UsageError where they can't be read."""
    path = run_directory / FILE
    try:
        stored = formats.read_json(path.read_bytes(), FuzzOptions)
    except FileNotFoundError as error:
        raise UsageError(f"the run {run_directory} has no {FILE}: it ended before it began; start a new run") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{path} can't be read: {error}; use the version of chaosckpt that wrote it, or start a new run"
        ) from error
    return msgspec.structs.replace(stored, run=str(run_directory))


def budget_seconds(minutes: float | None, hours: float | None) -> float | None:
    """Both budgets in seconds. They add up, so that `--hours 1 --minutes 30` means what it says."""
    if minutes is None and hours is None:
        return None
    return (minutes or 0.0) * 60.0 + (hours or 0.0) * 3600.0


def parse_trial(name: str) -> tuple[int, int]:
    """Seed and index of a trial's name `SEED:INDEX`. Raises UsageError for anything else."""
    seed, separator, index = name.partition(":")
    if not (separator and seed.isdecimal() and index.isdecimal()):
        raise UsageError(f"{name!r} is not the name of a trial; write SEED:INDEX, two whole numbers such as 1:17")
    return int(seed), int(index)
