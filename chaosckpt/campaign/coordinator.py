"""The coordinator: the process that runs a campaign, as the driver of Ray.

Run as `python -m chaosckpt.campaign.coordinator RUN FD [--resume]` by chaosckpt/campaign/launch.py. It tells progress and its result on
FD, and ends when its standard input does.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import Protocol

import msgspec
import structlog

from chaosckpt.campaign import logs
from chaosckpt.campaign import options as campaign_options
from chaosckpt.campaign.execution import Executor, Turns
from chaosckpt.campaign.investigation import Investigator
from chaosckpt.campaign.kinds import kinds_for
from chaosckpt.campaign.launch import Told
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.preparation import Prepared, deadlines_of, effective, prepare
from chaosckpt.campaign.ray_arenas import RayArenas
from chaosckpt.campaign.ray_cluster import Cluster, connect
from chaosckpt.campaign.script_arenas import ScriptArenas
from chaosckpt.campaign.search import Search
from chaosckpt.campaign.store import JournalFile, TrialLog
from chaosckpt.engine import storage
from chaosckpt.engine.arena import Arena
from chaosckpt.errors import ChaosckptError, HarnessError, UsageError, of_this_machine
from chaosckpt.model.summary import CampaignSummary, Progress

LOG = structlog.get_logger("chaosckpt.campaign")
INTERRUPTED = 130
IMPATIENT = 2
"""Interrupts after which nothing more is waited for."""


class Arenas(Protocol):
    """Where trials run side by side."""

    def arena(self, number: int) -> Arena:
        """Arena `number`, from 0, once it is up."""
        ...

    def rebuild(self, number: int) -> Arena:
        """The same arena, made anew after harness trouble."""
        ...


class Teller:
    """The pipe to the command line. Nobody listening any more is no error: the end of standard input says so, too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def tell(self, told: Told) -> None:
        """Write one line."""
        with self._lock:
            try:
                os.write(self._descriptor, msgspec.json.encode(told) + b"\n")
            except BrokenPipeError:
                return

    def progress(self, progress: Progress) -> None:
        self.tell(Told(progress=progress))

    def preparing(self, message: str) -> None:
        self.progress(Progress(phase="prepare", message=message))


class Campaign:
    """One part of a campaign, from its options to its summary."""

    def __init__(self, options: FuzzOptions, teller: Teller) -> None:
        self.options = options
        self.teller = teller
        self.interrupts = 0
        self.search: Search | None = None
        self.ended = threading.Event()
        self.booting = False
        """Ray is being started by a thread that can't be stopped; when this process ends, the janitor clears away what it started."""

    def interrupt(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        """Stop as soon as the running trials have ended; at once when asked again."""
        self.interrupts += 1
        if self.search is not None:
            self.search.stopped.set()
            self.search.message = "stopping once the running trials have ended; interrupt again to stop at once"
        if self.interrupts >= IMPATIENT or self.search is None:
            raise KeyboardInterrupt

    def run(self) -> CampaignSummary:
        """Prepare, search, sum up."""
        options = self.options
        workers = options.workers or default_workers()
        if options.scenario.command is not None:
            return self._run_command(workers)
        with ExitStack() as stack:
            stack.callback(_sweep, options.scenario.storage.local)  # last, when the processes of the cluster have ended
            pool = ThreadPoolExecutor(max_workers=1)
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            connecting = pool.submit(lambda: stack.enter_context(connect(options.address, cpus=os.cpu_count() or 1)))
            self.booting = True
            prepared = prepare(options.scenario, say=self.teller.preparing)
            self.teller.preparing("waiting for Ray")
            cluster: Cluster = connecting.result()
            self.booting = False
            signal.signal(signal.SIGINT, self.interrupt)
            self.teller.preparing(f"starting {workers} arenas")
            where = options.scenario.storage.shared
            shared = Path(where) if where is not None else None
            arenas = stack.enter_context(
                RayArenas(
                    cluster,
                    options.scenario,
                    workers,
                    shared,
                    modules=prepared.modules,
                    gate=prepared.gate == "seccomp",
                )
            )
            return self._search(prepared, arenas, workers)

    def _run_command(self, workers: int) -> CampaignSummary:
        """The same for an unmodified command: its process trees run on this machine, without Ray."""
        scenario = self.options.scenario
        prepared = prepare(scenario, say=self.teller.preparing)
        scenario = effective(scenario, prepared)
        self.options = msgspec.structs.replace(self.options, scenario=scenario)
        for remark in prepared.remarks:
            self.teller.preparing(remark)
        signal.signal(signal.SIGINT, self.interrupt)
        self.teller.preparing(f"starting {workers} arenas")
        with ScriptArenas(scenario, workers, prepared.modules) as arenas:
            return self._search(prepared, arenas, workers)

    def _search(self, prepared: Prepared, arenas: Arenas, workers: int) -> CampaignSummary:
        options, run = self.options, self.options.run_directory
        prepared.store(run)
        investigator = Investigator(options, prepared.census, kinds_for(options.scenario), self.teller.progress)
        self.search = Search(
            options,
            prepared.census,
            kinds_for(options.scenario),
            TrialLog(run),
            investigator.investigate,
            self.teller.progress,
        )
        self.search.findings = investigator.count
        investigator.watch(self.search)
        turns = Turns()
        deadlines = deadlines_of(prepared.census)
        with ExitStack() as stack:
            executors = []
            for number in range(workers):
                journals = JournalFile(run / "journals" / f"worker-{number}.jsonl")
                stack.callback(journals.close)
                executors.append(
                    Executor(
                        options.scenario,
                        arenas.arena(number),
                        deadlines,
                        turns,
                        journals.write,
                        _rebuilder(arenas, number),
                        prepared.census,
                        prepared.facts,
                    )
                )
            self.search.run(executors)
        return self.search.tally.summary(
            scenario=options.scenario.name,
            seed=options.seed,
            run=options.run,
            seconds=self.search.seconds,
            findings=investigator.summaries(self.search.tally.records.values()),
            fresh=self.search.fresh,
            gate=prepared.gate,
            launch=prepared.launch or options.scenario.run.launch,
            interrupted=self.interrupts > 0,
            max_inconclusive=options.max_inconclusive,
            remarks=prepared.remarks,
        )


def _sweep(local: str | None) -> None:
    """Remove what nodes left whose start was given up: nobody told them to clear away."""
    for place in {tempfile.gettempdir(), local or tempfile.gettempdir()}:
        storage.sweep(Path(place))


def _rebuilder(arenas: Arenas, number: int) -> Callable[[], Arena]:
    return lambda: arenas.rebuild(number)


def default_workers() -> int:
    """One worker a core was the best on two cores; more than eight on one machine is asked for with --workers."""
    return max(1, min(8, len(os.sched_getaffinity(0))))


def main() -> None:
    """Run the campaign of a run directory and tell its summary, or why there is none."""
    run, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    teller = Teller(descriptor)
    logs.to_run(run, lambda entry: teller.tell(Told(log=entry)))
    options = msgspec.structs.replace(campaign_options.load(run), resume="--resume" in sys.argv[3:])
    campaign = Campaign(options, teller)
    signal.signal(signal.SIGINT, campaign.interrupt)
    threading.Thread(target=_end_with_parent, args=(campaign,), name="end-with-parent", daemon=True).start()
    try:
        summary = campaign.run()
        (run / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
        teller.tell(Told(summary=summary))
        code = 0
    except ChaosckptError as error:
        code = _give_up(teller, str(error), error)
    except OSError as error:
        if (why := of_this_machine(error, f"continue with: chaosckpt fuzz --resume {run}")) is None:
            raise
        code = _give_up(teller, why, HarnessError(why))
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        campaign.ended.set()
    if campaign.booting:
        os._exit(code)
    sys.exit(code)


def _give_up(teller: Teller, why: str, error: ChaosckptError) -> int:
    """Say why the campaign can't go on; returns the exit code. The log may be on the disk that is full."""
    teller.tell(Told(error=why, usage=isinstance(error, UsageError)))
    with suppress(OSError):
        LOG.error("the campaign can't go on", why=why)
    return error.exit_code


def _end_with_parent(campaign: Campaign) -> None:
    """Standard input ends when the command line does: stop the campaign, and after a while the process, whatever it is doing."""
    while os.read(0, 4096):
        continue
    if campaign.ended.is_set():
        return
    os.kill(os.getpid(), signal.SIGINT)
    if not campaign.ended.wait(timeout=3.0):
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
