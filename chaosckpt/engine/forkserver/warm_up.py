"""Warming up: what a rank will import is imported once, in the parent, found out by letting a child run a rank's program first."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec

from chaosckpt.engine.forkserver.imports import import_all
from chaosckpt.engine.rank.job import interface_of
from chaosckpt.engine.rank.training import Training
from chaosckpt.engine.wire.channel import Channel, pair
from chaosckpt.engine.wire.orders import AttemptOrder, NodeSettings, Place, RankOrder, Ready, Refused, TargetFacts
from chaosckpt.engine.wire.programs import TrainingProgram
from chaosckpt.errors import ChaosckptError, PluginError, UsageError
from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.plugins import load_target


def up(settings: NodeSettings) -> Ready | Refused:
    """Load the target, import what its ranks import. The process must end up with one thread for ranks to be forked from it."""
    try:
        facts = target_facts(settings)
    except ChaosckptError as error:
        return Refused(str(error), isinstance(error, UsageError))
    import torch

    torch.set_num_threads(1)
    modules = settings.modules
    if settings.launch == "fork":
        modules = modules or _rehearse(settings)
        import_all(modules)
        # Within the node's own directory: what a kill leaves of it is cleared away with that.
        if _in_child(lambda: warm_up(settings.directory)):
            warm_up(settings.directory)
    return Ready(facts, modules, len(os.listdir("/proc/self/task")))


def target_facts(settings: NodeSettings) -> TargetFacts:
    """What the target claims. Raises UsageError when it can't save the workload's strategy, PluginError for a claim that can't be."""
    target = load_target(settings.target)
    if settings.workload.strategy not in target.strategies:
        known = ", ".join(sorted(target.strategies))
        raise UsageError(
            f"target {settings.target} can't save a {settings.workload.strategy} model; set workload.strategy to one "
            f"that the target supports: {known}"
        )
    claims = {
        "name": target.name or target.__name__,
        "guarantees": target.guarantees,
        "nonces": target.nonces,
        "strategies": target.strategies,
        "keeps_rng": target.keeps_rng,
        "outstanding": target.outstanding,
        "abandoned": target.abandoned,
    }
    try:
        facts = msgspec.convert(claims, TargetFacts)
        for pattern in facts.nonces:
            re.compile(pattern)
    except (msgspec.ValidationError, re.error) as error:
        said = str(error).replace("`$.", "`")
        raise PluginError(
            f"target {settings.target} declares impossible values: {said}; correct them in the class"
        ) from error
    return msgspec.structs.replace(
        facts, guarantees=tuple(sorted(facts.guarantees)), strategies=tuple(sorted(facts.strategies))
    )


def warm_up(base: str = "") -> None:
    """Train, save and load a tiny job without any target, so that ranks find this code run in: half of a rank's first save is that.

    A target's own code runs in ranks only: what it keeps in its modules must not be shared among them. Random streams stay as
    they were.
    """
    from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
    from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

    from chaosckpt.training.digest import digest
    from chaosckpt.training.loop import build, train_step
    from chaosckpt.training.rng import RandomStreams

    streams = RandomStreams()
    before = streams.state_dict()
    directory = Path(tempfile.mkdtemp(prefix="practice-", dir=base or None))
    try:
        job = build(WorkloadSettings(), rank=0, world_size=1, attempt=0)
        for _ in range(2):
            train_step(job)
            digest(job.state)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                where = directory / str(job.state.step)
                state_dict_saver.save(job.state.sharded_state_dict(), storage_writer=FileSystemWriter(where))
                template = job.state.sharded_state_dict()
                state_dict_loader.load(template, storage_reader=FileSystemReader(where))
                job.state.load_sharded_state_dict(template)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        streams.load_state_dict(before)


def _in_child(action: Callable[[], None]) -> bool:
    """Whether a forked child can do this and then still has one thread: a parent with more could not be forked from."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0 if len(os.listdir("/proc/self/task")) == 1 else 1)
        except BaseException:  # a warm-up step that fails only leaves ranks less warm
            traceback.print_exc()
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _rehearse(settings: NodeSettings) -> tuple[str, ...]:
    """Run a rank's program twice, from the start and resumed, each time in a child; returns the modules that they had imported."""
    directory = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=settings.directory or None))
    found: list[str] = []
    try:
        tiers = {}
        for tier in ("shared", "local"):
            (directory / tier).mkdir()
            tiers[tier] = str(directory / tier)
        for attempt, intent in enumerate(("start", "resume")):
            order = AttemptOrder(attempt=attempt, intent=intent, world_size=1, places=(Place(0, 0, 0, tiers),))  # type: ignore[arg-type]
            modules = _run_in_child(RankOrder(settings=settings, attempt=order, place=order.places[0]))
            import_all(modules)
            found += [name for name in modules if name not in found]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return tuple(found)


def _run_in_child(order: RankOrder) -> tuple[str, ...]:
    ours, theirs = pair()
    listing_read, listing_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            os.close(listing_read)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            _rehearse_once(order, theirs)
        except BaseException:  # a rehearsal that fails only leaves ranks less warm
            traceback.print_exc()
        with os.fdopen(listing_write, "w") as stream:
            stream.write("\n".join(sys.modules))
        os._exit(0)
    theirs.close()
    os.close(listing_write)
    _answer(ours)
    with os.fdopen(listing_read) as stream:
        names = stream.read().split("\n")
    os.waitpid(pid, 0)
    return tuple(name for name in names if name and name != "__main__")


def _rehearse_once(order: RankOrder, connection: socket.socket) -> None:
    """Train once without a gate, so that all that a rank imports is imported."""
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(order.attempt.address)
    import torch.distributed as dist
    from torch._C._distributed_c10d import TCPStore

    if order.settings.workload.strategy == "ddp":  # a lone rank needs no group, but those of a larger world will
        store = TCPStore(order.attempt.address, 0, is_master=True, wait_for_workers=False)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        dist.barrier()
        dist.all_gather_object([None], None)
        from torch.nn.parallel import DistributedDataParallel  # noqa: F401 - imported for its warmth
    Training(order, Channel(connection), TrainingProgram()).run()


def _answer(connection: socket.socket) -> None:
    """Let the child's reports pass, as a node would."""
    channel = Channel(connection)
    while (payloads := channel.feed()) is not None:
        for _ in payloads:
            try:
                connection.sendall(b"k")
            except OSError:
                continue  # its last report may come as it goes
    channel.close()
