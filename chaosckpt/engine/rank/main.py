"""The process of a rank: it takes its order and runs the program that this names.

Started cold as `python -m chaosckpt.engine.rank.main FD PARENT`, FD being its end of the node's channel; a rank that a fork server has
forked calls `run`. Imports are late: a command must find nothing imported that it didn't import itself.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.process_tree import die_with_parent
from chaosckpt.engine.wire.programs import (
    AuditProgram,
    CommandProgram,
    MeasuringProgram,
    ReferenceProgram,
    TrainingProgram,
)

if TYPE_CHECKING:
    from chaosckpt.engine.rank.job import JobProgram

_ORDERS = msgspec.msgpack.Decoder(RankOrder)
JobOrder = TrainingProgram | AuditProgram | ReferenceProgram | MeasuringProgram


class Program(Protocol):
    """What a rank runs between its order and its exit."""

    def run(self) -> None:
        """Run to the end. Raises what the code under test raises: that ends the rank as it would end a script."""


def run(connection: socket.socket, cold_path: Sequence[str] | None = None) -> None:
    """The whole process of a rank, given its end of the channel to its node. Only a command in a warm interpreter returns.

    `cold_path` is sys.path as a cold interpreter has it, where this one is warm. To be called at the top level of the process: what a
    command registered for the exit then runs as ever.
    """
    channel = Channel(connection)
    try:
        order = _ORDERS.decode(channel.receive())
    except (EOFError, ConnectionError):
        os._exit(1)  # the node is gone, and this rank goes with it
    ordered = order.attempt.program
    if isinstance(ordered, CommandProgram):
        from chaosckpt.engine.rank.command import Command

        program: Program = Command(order, connection, ordered, cold_path)
        program.run()
    else:
        run_job(order, channel, ordered, cold=cold_path is None)


def run_job(order: RankOrder, channel: Channel, ordered: JobOrder, *, cold: bool) -> None:
    """Run a program of a training job. Never returns."""
    if cold:
        os.environ["OMP_NUM_THREADS"] = "1"
        import torch

        torch.set_num_threads(1)
    from chaosckpt.engine.rank.job import guarded

    try:
        code = guarded(program_of(order, channel, ordered))
    except (EOFError, ConnectionError):
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a log that can't be written must not change how this rank ended
            stream.flush()
    os._exit(code)


def program_of(order: RankOrder, channel: Channel, ordered: JobOrder) -> JobProgram:
    """The program that a rank of a training job is ordered to run."""
    match ordered:
        case TrainingProgram():
            from chaosckpt.engine.rank.training import Training

            return Training(order, channel, ordered)
        case AuditProgram():
            from chaosckpt.engine.rank.audit import Audit

            return Audit(order, channel, ordered)
        case ReferenceProgram():
            from chaosckpt.engine.rank.reference import ReferenceJob

            return ReferenceJob(order, channel, ordered)
        case MeasuringProgram():
            from chaosckpt.engine.rank.measuring import Measuring

            return Measuring(order, channel, ordered)


def main() -> None:
    """Become a rank as a forked one does, but with everything still to be imported."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    os.setsid()
    die_with_parent(parent)
    run(connection)


if __name__ == "__main__":
    main()
