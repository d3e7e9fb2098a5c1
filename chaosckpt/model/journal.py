"""The journal: the harness-owned, append-only record of a trial, from which alone the oracle judges."""

from __future__ import annotations

from typing import Literal

import msgspec

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.operation import Operation

Intent = Literal["start", "resume"]
AttemptOutcome = Literal["finished", "failed", "killed", "hung"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=str.lower):
    """Base of all events. `attempt` counts from 0; order in the journal is the order in which the harness learnt of them."""

    attempt: int = 0


class TrialStarted(Event, frozen=True, kw_only=True):
    """The first event: what is going to be done, and what the target is held to."""

    trial: str
    schedule: dict[str, object]
    guarantees: tuple[Guarantee, ...]
    scenario: str
    total_steps: int
    fresh_start: str = "refused"


class AttemptStarted(Event, frozen=True, kw_only=True):
    """A launch of the job. `faults` are indices into the attempt's plan, `hang_deadline_seconds` what a hang is told by."""

    ranks: tuple[int, ...]
    intent: Intent
    closing: bool = False
    launch: str = "fork"


class SaveStarted(Event, frozen=True, kw_only=True):
    """A rank captured its state and called the target's save. The digest is of the live state at that moment."""

    rank: int
    step: int
    digest: StateDigest


class Acknowledged(Event, frozen=True, kw_only=True):
    """A rank was told by the target that its part of the save of `step` is safe on the tier `level`."""

    rank: int
    step: int
    level: str


class RecoveryStarted(Event, frozen=True, kw_only=True):
    """A rank calls the target's `recover`."""

    rank: int


class Recovered(Event, frozen=True, kw_only=True):
    """`recover` returned on a rank: `chosen` is the step it says (None: Nothing); the digest is of the live state after it."""

    rank: int
    chosen: int | None
    digest: StateDigest


class Finished(Event, frozen=True, kw_only=True):
    """A rank reached the last step, its saves awaited and the target closed."""

    rank: int
    step: int
    digest: StateDigest


class Raised(Event, frozen=True, kw_only=True):
    """An exception left the target or the training loop of a rank. `where`: recover, train, save, wait or close."""

    rank: int
    where: str
    step: int | None
    error_type: str
    message: str


class RankExited(Event, frozen=True, kw_only=True):
    """A rank's process ended: by `exit_code`, or by `signal`. `by` tells whether a fault, the rank itself or the harness did it.

    by "self": of its own accord. by "fault": an injected fault. by "harness": cleared away after the job's end or deadline.
    """

    rank: int
    exit_code: int | None = None
    signal: int | None = None
    by: Literal["self", "fault", "harness"] = "self"
    stderr_tail: str = ""


class FaultLanded(Event, frozen=True, kw_only=True):
    """Evidence that the fault with this index in the attempt's plan struck. `operation` where it struck one."""

    fault: int
    kind: str
    evidence: str
    operation: Operation | None = None
    label: str = ""
    """The census label of that operation: which stage of which save or recovery."""
    needs: tuple[Guarantee, ...] = ()
    """The fault's `needs`: a target without one of these guarantees may lose its checkpoints by this fault."""


class FaultMissed(Event, frozen=True, kw_only=True):
    """The attempt ended and this fault had not struck, for this reason."""

    fault: int
    kind: str
    reason: str


class StorageDestroyed(Event, frozen=True, kw_only=True):
    """The harness deleted what a tier held: of one node when node-local, else of all. `files` counts what was there."""

    tier: str
    node: int | None
    files: int
    cause: Literal["node-loss", "local-storage-loss", "shared-storage-loss"]


class ErrorInjected(Event, frozen=True, kw_only=True):
    """A system call of a rank was made to fail by a fault."""

    rank: int
    error: str
    operation: Operation


class Untraced(Event, frozen=True, kw_only=True):
    """Something reached storage past the gate; what rests on the trace can't be judged.

    `refused`: the way past the gate was asked for and refused, so that nothing went by; told, but no doubt about the trial.
    """

    rank: int
    what: str
    refused: bool = False


class AttemptEnded(Event, frozen=True, kw_only=True):
    """finished: every rank ended with exit code 0. killed: a fault ended the job. failed: it ended by itself, with errors.
    hung: no CPU time and no operation before the deadline; `confirmed` after a lone run at three times the deadline."""

    outcome: AttemptOutcome
    confirmed: bool = False
    operations: tuple[int, ...] = ()
    """Operations that each rank performed."""


class HarnessTrouble(Event, frozen=True, kw_only=True):
    """The harness failed in this trial: it is never a finding."""

    what: str


class TrialEnded(Event, frozen=True, kw_only=True):
    """The last event; a journal without it was cut off."""


AnyEvent = (
    TrialStarted | AttemptStarted | SaveStarted | Acknowledged | RecoveryStarted | Recovered | Finished | Raised | RankExited
    | FaultLanded | FaultMissed | StorageDestroyed | ErrorInjected | Untraced | AttemptEnded | HarnessTrouble | TrialEnded
)  # fmt: skip


class Journal(msgspec.Struct, frozen=True):
    """All events of one trial, in order."""

    events: tuple[AnyEvent, ...]

    @property
    def trial(self) -> str:
        first = self.events[0]
        return first.trial if isinstance(first, TrialStarted) else "?"


def encode(event: AnyEvent) -> bytes:
    """One line of JSON without its newline."""
    return msgspec.json.encode(event)


_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode(line: bytes) -> AnyEvent:
    """Raises msgspec.DecodeError for a torn or foreign line."""
    return _DECODER.decode(line)
