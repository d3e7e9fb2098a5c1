"""The coordinator: the process that runs a campaign, as the driver of Ray.

Run as `python -m chaosckpt.campaign.coordinator RUN FD [--resume]` by chaosckpt/campaign/launch.py. It tells progress and its result on
FD, and ends when its standard input does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import msgspec
import structlog

from chaosckpt.campaign import logs
from chaosckpt.campaign import options as campaign_options
from chaosckpt.campaign.arenas import Arenas, Site, site_of
from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.investigation import Investigator
from chaosckpt.campaign.journal_files import SUFFIX, JournalFile
from chaosckpt.campaign.launch import OWN_FAULT, CoordinatorMessage
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.campaign.preparation import deadlines_of, prepare, store_census
from chaosckpt.campaign.search import Search
from chaosckpt.campaign.store import TrialLog
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.subjects import Prepared, Subject, subject_of
from chaosckpt.errors import ChaosckptError, HarnessError, UsageError, of_this_machine
from chaosckpt.model.summary import CampaignSummary, Progress

LOG = structlog.get_logger("chaosckpt.campaign")
INTERRUPTED = 130
IMPATIENT = 2
"""Interrupts after which nothing more is waited for."""


class CoordinatorPipe:
    """The pipe to the command line. Nobody listening any more is no error: the end of standard input says so, too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, message: CoordinatorMessage) -> None:
        """Write one line."""
        with self._lock:
            try:
                os.write(self._descriptor, msgspec.json.encode(message) + b"\n")
            except BrokenPipeError:
                return

    def progress(self, progress: Progress) -> None:
        self.send(CoordinatorMessage(progress=progress))

    def preparing(self, message: str) -> None:
        self.progress(Progress(phase="prepare", message=message))


class Campaign:
    """One part of a campaign, from its options to its summary."""

    def __init__(self, options: FuzzOptions, pipe: CoordinatorPipe) -> None:
        self.options = options
        self.pipe = pipe
        self.interrupts = 0
        self.search: Search | None = None
        self.ended = threading.Event()
        self.begun = time.monotonic()
        self.site: Site | None = None

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
        options, progress = self.options, self.pipe.preparing
        with ExitStack() as stack:
            self.site = stack.enter_context(site_of(subject_of(options.scenario), options, progress))
            prepared = prepare(options.scenario, progress=progress)
            subject = subject_of(options.scenario, prepared)
            workers, fewer = subject.workers(options.workers or default_workers())
            if fewer:
                prepared = msgspec.structs.replace(prepared, remarks=(*prepared.remarks, fewer))
            self.options = msgspec.structs.replace(options, scenario=subject.scenario)
            for remark in prepared.remarks:
                progress(remark)
            arenas = stack.enter_context(self.site.arenas(subject, prepared, workers))
            signal.signal(signal.SIGINT, self.interrupt)  # Ray may have put another handler there
            progress(f"starting {workers} arenas")
            return self._search(subject, prepared, arenas, workers)

    def _search(self, subject: Subject, prepared: Prepared, arenas: Arenas, workers: int) -> CampaignSummary:
        options, run = self.options, self.options.run_directory
        store_census(prepared.census, run)
        kinds = subject.kinds()
        investigator = Investigator(options, prepared.census, kinds, self.pipe.progress, prepared.modules)
        self.search = Search(
            options,
            prepared.census,
            kinds,
            TrialLog(run),
            investigator.investigate,
            investigator.cause,
            self.pipe.progress,
            begun=self.begun,
        )
        self.search.findings = investigator.count
        investigator.watch(self.search)
        lock = SharedExclusiveLock()
        deadlines = deadlines_of(prepared.census)
        with ExitStack() as stack:
            stack.callback(investigator.close)
            executors = []
            for number in range(workers):
                journals = JournalFile(run / "journals" / f"worker-{number}{SUFFIX}")
                stack.callback(journals.close)
                executors.append(
                    Executor(subject, arenas.arena(number), deadlines, lock, journals.write, _rebuilder(arenas, number))
                )
            self.pipe.preparing("restarting the finished job once, without a fault")
            investigator.restart_plainly(executors[0])
            self.search.unfinished = investigator.unfinished(self.search.tally.records.values())
            self.search.run(executors)
        return self.search.tally.summary(
            scenario=options.scenario.name,
            seed=options.seed,
            run=options.run,
            seconds=self.search.seconds,
            findings=investigator.summaries(self.search.tally.records.values()),
            fresh=self.search.fresh,
            gate=prepared.gate,
            launch=prepared.launch,
            launcher=subject.launcher,
            seen=subject.training_seen,
            interrupted=self.interrupts > 0,
            max_inconclusive=options.max_inconclusive,
            remarks=prepared.remarks,
        )


def _rebuilder(arenas: Arenas, number: int) -> Callable[[], Arena]:
    return lambda: arenas.rebuild(number)


def default_workers() -> int:
    """One worker a core was the best on two cores; more than eight on one machine is asked for with --workers."""
    return max(1, min(8, len(os.sched_getaffinity(0))))


def main() -> None:
    """Run the campaign of a run directory and tell its summary, or why there is none."""
    run, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    pipe = CoordinatorPipe(descriptor)
    logs.to_run(run, lambda entry: pipe.send(CoordinatorMessage(log=entry)))
    options = msgspec.structs.replace(campaign_options.load(run), resume="--resume" in sys.argv[3:])
    campaign = Campaign(options, pipe)
    signal.signal(signal.SIGINT, campaign.interrupt)
    threading.Thread(target=_end_with_parent, args=(campaign,), name="end-with-parent", daemon=True).start()
    try:
        summary = campaign.run()
        (run / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
        pipe.send(CoordinatorMessage(summary=summary))
        code = 0
    except ChaosckptError as error:
        code = _give_up(pipe, str(error), error)
    except OSError as error:
        if (why := of_this_machine(error, f"continue with: chaosckpt fuzz --resume {run}", str(run))) is None:
            raise
        code = _give_up(pipe, why, HarnessError(why))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (
        Exception
    ):  # A bug of ours comes again if it is tried again: the status says so, and the log of the coordinator has it.
        traceback.print_exc()
        code = OWN_FAULT
    finally:
        campaign.ended.set()
    if campaign.site is not None and campaign.site.starting:
        os._exit(code)
    sys.exit(code)


def _give_up(pipe: CoordinatorPipe, why: str, error: ChaosckptError) -> int:
    """Say why the campaign can't go on; returns the exit code. The log may be on the disk that is full."""
    pipe.send(CoordinatorMessage(error=why, usage=isinstance(error, UsageError)))
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
