"""Journals of a run: read back trial by trial, whatever the end of a file looks like."""

from __future__ import annotations

import gzip

import pytest

from chaosckpt.campaign import journals
from chaosckpt.campaign.journal_files import SUFFIX, JournalFile
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


def appended(path, *trials: str, close: bool = True) -> None:
    file = JournalFile(path)
    for trial in trials:
        file.write(trial, started(trial))
        file.write(trial, j.TrialEnded())
    if close:
        file.close()


def test_a_killed_campaigns_file_is_read_up_to_its_last_whole_line_and_continued(tmp_path):
    """Cut at every byte, a compressed file gives the trials that ended before, and all that a resumed campaign adds."""
    path = tmp_path / journals.DIRECTORY / f"worker-0{SUFFIX}"
    appended(path, "1:0", "1:1", close=False)
    content, seen = path.read_bytes(), set()
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        before = [found.journal.trial for found in journals.read(tmp_path)]
        assert before == ["1:0", "1:1"][: len(before)]
        seen.add(len(before))
        appended(path, "1:9")
        assert [found.journal.trial for found in journals.read(tmp_path)] == [*before, "1:9"]
    assert seen == {0, 1, 2}


def test_a_whole_file_is_continued_as_it_is_and_gzip_reads_it(tmp_path):
    """Two parts of a campaign are two members of one gzip file; nothing of the first is written again."""
    path = tmp_path / journals.DIRECTORY / f"worker-0{SUFFIX}"
    appended(path, "1:0")
    first = path.read_bytes()
    appended(path, "1:1")
    assert path.read_bytes().startswith(first)
    assert [found.journal.trial for found in journals.read(tmp_path)] == ["1:0", "1:1"]
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 4


def test_damage_and_a_half_mended_file_are_no_trials(tmp_path):
    """What isn't gzip, or is a copy that was being made when the harness was killed, is left out."""
    path = tmp_path / journals.DIRECTORY / f"worker-0{SUFFIX}"
    appended(path, "1:0")
    path.with_name(f"{path.name}.new").write_bytes(path.read_bytes())
    path.with_name(f"worker-1{SUFFIX}").write_bytes(b"no gzip")
    assert [found.journal.trial for found in journals.read(tmp_path)] == ["1:0"]
