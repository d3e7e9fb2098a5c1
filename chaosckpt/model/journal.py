"""The journal: the harness-owned, append-only record of a trial, from which alone the oracle judges."""

from __future__ import annotations

from typing import Literal

import msgspec

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.operation import Operation

Intent = Literal["start", "resume"]
AttemptOutcome = Literal["finished", "failed", "killed", "hung"]


class StepTrace(msgspec.Struct, frozen=True):
    """One step that a rank trained: the global indices of its own samples, and its share of the loss as `float.hex`."""

    step: int
    samples: tuple[int, ...]
    loss: str


class ReferenceStep(msgspec.Struct, frozen=True):
    """What the reference job had after a step. `samples` are those of all ranks, sorted; `losses` the ranks' shares.

    `parts` and `rng` (a rank each) are fingerprints of the digest (chaosckpt.model.digest.fingerprint); empty after a step
    that is not saved.
    """

    step: int
    samples: tuple[int, ...]
    losses: tuple[str, ...]
    parts: dict[str, str] = {}
    rng: tuple[str, ...] = ()


class Segment(msgspec.Struct, frozen=True):
    """A part of a job's life: from the step `since` on it was trained by `ranks` ranks on each node."""

    ranks: tuple[int, ...]
    since: int


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=str.lower):
    """Base of all events. `attempt` counts from 0; order in the journal is the order in which the harness learnt of them."""

    attempt: int = 0


class TrialStarted(Event, frozen=True, kw_only=True):
    """The first event: what is going to be done, and what the target is held to."""

    trial: str
    schedule: dict[str, object]
    guarantees: tuple[Guarantee, ...]
    scenario: str
    format: int = 1
    """Of the journal (chaosckpt/model/formats.py); the first format had no number."""
    total_steps: int
    fresh_start: str = "refused"
    keeps_rng: bool = False
    """The target's claim that ranks which exist before and after a world-size change keep their random streams."""
    outstanding: int = 1
    """The target's claim of how many saves it lets be under way at once."""
    samples: dict[int, tuple[int, ...]] = {}
    """Of a command that tells its samples: those of each step of the uninterrupted run, sorted, of all ranks."""
    saves: tuple[int, ...] = ()
    """Of a command: the steps that golden runs saved."""
    judged: tuple[str, ...] = ()
    """Of a command: which of its signs are known and steady: `checkpoints`, `resumed`, `saved`, `result`, `resumes` (without any
    fault it said the very step of the checkpoint that it was given), `exact` (it then ended with the same result)."""
    at_end: str = "await"
    """What the training script does about outstanding saves before it exits (WorkloadSettings.at_end)."""


class AttemptStarted(Event, frozen=True, kw_only=True):
    """A launch of the job with `ranks` ranks on each node. The `closing` attempt has no faults; `launch` is fork or exec."""

    ranks: tuple[int, ...]
    intent: Intent
    closing: bool = False
    launch: str = "fork"


class SaveStarted(Event, frozen=True, kw_only=True):
    """A rank captured its state and called the target's save. The digest is of the live state at that moment.

    `trained` are the steps since this rank's last event of this kind in the attempt, oldest first.
    """

    rank: int
    step: int
    digest: StateDigest
    trained: tuple[StepTrace, ...] = ()


class Outstanding(Event, frozen=True, kw_only=True):
    """`save` of `step` returned to a rank with work still to do: `saves` are the steps whose saves aren't finished now."""

    rank: int
    step: int
    saves: tuple[int, ...]


class SaveFailed(Event, frozen=True, kw_only=True):
    """A save raised and the training script goes on: it tries the save again in the same process."""

    rank: int
    step: int
    where: str
    error_type: str
    message: str


class Acknowledged(Event, frozen=True, kw_only=True):
    """A rank was told by the target that its part of the save of `step` is safe on the tier `level`."""

    rank: int
    step: int
    level: str


class RecoveryStarted(Event, frozen=True, kw_only=True):
    """A rank calls the target's `recover`. `rng` are its random streams before that, as in a StateDigest: as the job was built."""

    rank: int
    rng: dict[str, str] = {}


class Recovered(Event, frozen=True, kw_only=True):
    """`recover` returned on a rank: `chosen` is the step it says (None: Nothing); the digest is of the live state after it."""

    rank: int
    chosen: int | None
    digest: StateDigest


class Finished(Event, frozen=True, kw_only=True):
    """A rank reached the last step and left its saves as the workload's `at_end` says (by default awaited, the target closed).

    `trained` as in SaveStarted: the steps since the last save.
    """

    rank: int
    step: int
    digest: StateDigest
    trained: tuple[StepTrace, ...] = ()


class Moment(msgspec.Struct, frozen=True):
    """When every rank of an attempt had been told that `step` is safe on the tier `level`.

    `alone`: without what node-local storage held then, which a target that promises to survive its loss can do without.
    """

    step: int
    level: str
    alone: bool = False


NOTHING = -1
"""What an audit that recovers has chosen where `recover` returned Nothing."""


class Audited(Event, frozen=True, kw_only=True):
    """After an attempt, a rank of an audit loaded one retained checkpoint by its step: the live state, or the error.

    Where the target lists nothing it recovers instead, as after a crash, and `chosen` is the step that it says, or NOTHING.
    """

    rank: int
    step: int
    chosen: int | None = None
    digest: StateDigest | None = None
    error_type: str = ""
    message: str = ""
    as_of: Moment | None = None
    """As in AuditEnded."""


class AuditEnded(Event, frozen=True, kw_only=True):
    """The audit after this attempt ended. `asked` are the acknowledged steps, `retained` all that the target lists now.

    It found storage as the attempt had left it; with `as_of` as it was at that moment of the attempt.
    """

    outcome: AttemptOutcome
    asked: tuple[int, ...]
    retained: tuple[int, ...]
    as_of: Moment | None = None


class Reference(Event, frozen=True, kw_only=True):
    """What this attempt should have trained: the harness's own job of the same lineage, without any checkpointer.

    `lineage` begins at step 0; the last segment is the attempt's own topology, from the step it resumed from unless the topology is
    that of the segment before. `start_rng` are the fingerprints of each rank's random streams when the attempt began to train.
    """

    lineage: tuple[Segment, ...]
    resumed_from: int
    start_rng: tuple[str, ...]
    steps: tuple[ReferenceStep, ...]


class CheckpointsSeen(Event, frozen=True, kw_only=True):
    """What the harness found of a command's checkpoints on storage, after the attempt (before any, `attempt` is -1).

    `complete` are the steps whose files equal those that a golden run had when it went on; `partial` are those of which something
    is there that doesn't. `differing` names, for a partial step, the first file that differs or is missing. `read` are the
    steps of whose files the attempt opened any for reading; None where that isn't known. `spare` are the steps of a checkpoint
    that always has the same name whose files lie, complete, under other names.
    """

    complete: tuple[int, ...] = ()
    partial: tuple[int, ...] = ()
    differing: dict[int, str] = {}
    read: tuple[int, ...] | None = None
    spare: tuple[int, ...] = ()


class Said(Event, frozen=True, kw_only=True):
    """A line that a command printed and one of the user's expressions matched."""

    what: Literal["saved", "resumed"]
    step: int | None
    line: str


class Probed(Event, frozen=True, kw_only=True):
    """What a script told through chaosckpt.probe: a save, a resumption, with the digest of its state, or a step's samples."""

    rank: int
    what: Literal["saved", "resumed", "trained"]
    step: int
    digest: str = ""
    samples: tuple[int, ...] = ()


class ResultCompared(Event, frozen=True, kw_only=True):
    """The command's result at the end of the closing attempt, beside that of the uninterrupted run."""

    equal: bool
    expected: str
    seen: str


class StorageLeft(Event, frozen=True, kw_only=True):
    """What lay on storage when the trial was over. `abandoned` are the files that no golden run leaves, with their bytes."""

    files: int
    bytes: int
    abandoned: tuple[tuple[str, int], ...] = ()
    bound_bytes: int = 0
    """How many abandoned bytes the target may leave, by its own declaration."""


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


class FaultInjected(Event, frozen=True, kw_only=True):
    """Evidence that the fault with this index in the attempt's plan took effect. `operation` where it was injected into one."""

    fault: int
    kind: str
    evidence: str
    operation: Operation | None = None
    label: str = ""
    """The census label of that operation: which stage of which save or recovery."""
    needs: tuple[Guarantee, ...] = ()
    """The fault's `needs`: a target without one of these guarantees may lose its checkpoints by this fault."""


class FaultNotInjected(Event, frozen=True, kw_only=True):
    """The attempt ended and this fault had not been injected, for this reason.

    `excused`: an error of the same attempt, which the subject might have survived, came before it and was injected. Then the trial
    shows what it would show without this fault.
    """

    fault: int
    kind: str
    reason: str
    excused: bool = False


class StorageDestroyed(Event, frozen=True, kw_only=True):
    """The harness deleted what a tier held: of one node when node-local, else of all. `files` counts what was there."""

    tier: str
    node: int | None
    files: int
    cause: Literal["node-loss", "local-storage-loss", "shared-storage-loss"]


class StorageMutated(Event, frozen=True, kw_only=True):
    """Between two attempts the harness changed what a tier held: a file was damaged, planted, or its times were set.

    `damages`: content that a checkpoint needs is no longer what was written.
    """

    tier: str
    node: int | None
    path: str
    what: str
    damages: bool = False


class ErrorInjected(Event, frozen=True, kw_only=True):
    """A system call of a rank was made to fail by a fault."""

    rank: int
    error: str
    operation: Operation


def may_spoil(event: Event) -> bool:
    """Whether a fault took effect in a running job so that what it saves from then on may be incomplete: a call failed, or a
    process ended whose end a target need not survive without a guarantee."""
    if isinstance(event, FaultInjected):
        return event.operation is not None and bool(event.needs)
    return isinstance(event, ErrorInjected)


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
    TrialStarted | AttemptStarted | SaveStarted | Outstanding | SaveFailed | Acknowledged | RecoveryStarted | Recovered
    | Finished | Raised | RankExited | FaultInjected | FaultNotInjected | StorageDestroyed | StorageMutated | ErrorInjected
    | Untraced | AttemptEnded | Reference | Audited | AuditEnded | StorageLeft | CheckpointsSeen | Said | Probed
    | ResultCompared | HarnessTrouble | TrialEnded
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
