"""Journals of a run: read back trial by trial, whatever the end of a file looks like."""

from __future__ import annotations

import pytest

from chaosckpt.campaign import journals
from chaosckpt.errors import UsageError
from chaosckpt.model import formats
from chaosckpt.model import journal as j


def started(trial: str) -> j.TrialStarted:
    return j.TrialStarted(trial=trial, schedule={}, guarantees=(), scenario="x", format=formats.RUN, total_steps=6)


def line(trial: str, event: j.AnyEvent) -> bytes:
    return b'{"trial":"%b","event":%b}\n' % (trial.encode(), j.encode(event))


def write(tmp_path, *lines: bytes, name: str = "worker-0.jsonl") -> None:
    (tmp_path / journals.DIRECTORY).mkdir(exist_ok=True)
    (tmp_path / journals.DIRECTORY / name).write_bytes(b"".join(lines))


def test_trials_come_back_whole_and_in_order(tmp_path):
    """Each complete trial is one journal, with the place of each of its events."""
    trouble = j.HarnessTrouble(what="a lost node")
    write(tmp_path, line("1:0", started("1:0")), line("1:0", trouble), line("1:0", j.TrialEnded()))
    write(tmp_path, line("1:1", started("1:1")), line("1:1", j.TrialEnded()), name="worker-1.jsonl")
    first, second = journals.read(tmp_path)
    assert first.journal == j.Journal((started("1:0"), trouble, j.TrialEnded()))
    assert first.places == tuple(f"journals/worker-0.jsonl:{number}" for number in (1, 2, 3))
    assert second.journal.trial == "1:1"


def test_cut_off_trials_and_torn_lines_are_left_out(tmp_path):
    """A harness that was killed leaves a trial without an end and half a line; the resumed run begins the trial again."""
    write(
        tmp_path,
        line("1:0", started("1:0")),
        line("1:0", j.HarnessTrouble(what="of the first try")),
        line("1:1", j.TrialEnded()),
        b'{"trial":"1:0","ev\n',
        b"\n",
        line("1:0", started("1:0")),
        line("1:0", j.TrialEnded()),
        line("1:2", started("1:2")),
        line("1:2", j.TrialEnded())[:-5],
    )
    (found,) = journals.read(tmp_path)
    assert found.journal == j.Journal((started("1:0"), j.TrialEnded()))


def test_a_run_without_journals_has_no_trials(tmp_path):
    """A campaign that ended before its first trial is read as empty."""
    assert list(journals.read(tmp_path)) == []


def test_a_journal_of_another_format_is_refused(tmp_path):
    """A journal of an older version, which had other names of events, is refused with both numbers instead of read in part."""
    begun = b'{"event":"trialstarted","trial":"1:0","schedule":{},"guarantees":[],"scenario":"x","total_steps":6}'
    old = b'{"trial":"1:0","event":%b}\n' % begun
    write(tmp_path, b"\n", old)
    with pytest.raises(
        UsageError, match=r"worker-0\.jsonl has format 1, and this version reads format 2: an older version"
    ):
        list(journals.read(tmp_path))
