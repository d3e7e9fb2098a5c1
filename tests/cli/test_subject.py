"""What `fuzz` tests: a scenario or a command after `--`, and how misuse of either is answered."""

from __future__ import annotations

import sys

import pytest

from chaosckpt.campaign import launch
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.model.scenario import CommandSettings
from tests.report.summaries import CLEAN


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The options of the campaigns that were asked for; none is run."""
    monkeypatch.chdir(tmp_path)
    campaigns: list[FuzzOptions] = []

    def fuzz(wanted: FuzzOptions, watch):
        campaigns.append(wanted)
        return CLEAN

    monkeypatch.setattr(launch, "fuzz", fuzz)
    return campaigns


def command(asked: list[FuzzOptions]) -> CommandSettings:
    found = asked[-1].scenario.command
    assert found is not None
    return found


def test_the_words_of_a_command_stay_as_they_are(run, asked, tmp_path):
    """Options after -- are the command's own, even if chaosckpt has one of that name, and a further --."""
    words = (sys.executable, "train.py", "--seed", "7", "--json", "--", "{out}")
    assert run("fuzz", "--trials", "3", "--", *words).code == 0
    assert command(asked).argv == words
    assert command(asked).directory == str(tmp_path)
    assert (asked[-1].scenario.name, asked[-1].trials, asked[-1].seed) == ("train", 3, 1)


def test_every_sign_arrives(run, asked, tmp_path):
    """Each marker on the command line reaches the command's settings."""
    (tmp_path / "more").mkdir()
    signs = [
        "--checkpoints",
        "{out}/c-*",
        "--resumed",
        r"from (\d+)",
        "--saved",
        r"saved (\d+)",
        "--result-cmd",
        "cat {out}/f",
    ]
    signs += [
        "--tolerance",
        "0.5",
        "--resume-args",
        "--from 'a b'",
        "--track",
        "more",
        "--cold",
        "--allow",
        "--allow-network",
    ]
    assert run("fuzz", *signs, "--ranks", "2,1", "--", sys.executable, "t.py", "{nproc}", "{out}").code == 0
    assert command(asked) == CommandSettings(
        argv=(sys.executable, "t.py", "{nproc}", "{out}"),
        checkpoints="{out}/c-*",
        resumed=r"from (\d+)",
        saved=r"saved (\d+)",
        result_command="cat {out}/f",
        tolerance=0.5,
        resume_argv=("--from", "a b"),
        track=("more",),
        cold=True,
        allow=True,
        allow_network=True,
        directory=str(tmp_path),
    )
    assert asked[-1].scenario.topology.ranks == ((2,), (1,))


def test_ranks_by_torchruns_option(run, asked):
    """The number that the command itself is told is the number of its ranks."""
    run("fuzz", "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "t.py", "{out}")
    assert asked[-1].scenario.topology.ranks == ((2,),)


OUT = (sys.executable, "t.py", "{out}")
CASES = [
    ("nothing", (), ["name what to fuzz", "-- python train.py"]),
    ("nothing after --", ("--",), ["no command after --"]),
    ("two subjects", ("dcp", "--", *OUT), ["'dcp'", "one of them"]),
    ("a sign without a command", ("dcp", "--saved", r"(\d)"), ["--saved", "after --"]),
    ("its spelling", ("dcp", "--result-cmd", "x"), ["--result-cmd describes"]),
    ("another spelling", ("dcp", "--resume-args", "x"), ["--resume-args describes"]),
    ("no {out}", ("--", sys.executable, "t.py"), ["no {out}", "python train.py --out {out}"]),
    ("no such command", ("--", "nosuch", "{out}"), ["'nosuch'", "PATH"]),
    ("glob elsewhere", ("--checkpoints", "c-*", "--", *OUT), ["'c-*'", "{out}/"]),
    ("glob of a directory", ("--checkpoints", "{out}/", "--", *OUT), ["'{out}/'", "must begin with {out}/"]),
    ("no group", ("--resumed", "step", "--", *OUT), ["--resumed", "'step'", "no group"]),
    ("two groups", ("--saved", "(a)(b)", "--", *OUT), ["--saved", "2 groups"]),
    ("no expression", ("--resumed", "(", "--", *OUT), ["--resumed", "'('", "not a valid regular expression"]),
    ("open quotes", ("--resume-args", "'", "--", *OUT), ["--resume-args", "can't be split"]),
    ("tolerance alone", ("--tolerance", "1", "--", *OUT), ["--tolerance", "--result-cmd"]),
    ("ranks without places", ("--ranks", "2,1", "--", *OUT), ["{nproc}"]),
    ("places without ranks", ("--", *OUT, "{nproc}"), ["{nproc}", "--ranks 2,1"]),
    ("signs of a run that goes on", ("--resume", "gone", "--saved", r"(\d)"), ["--resume", "'--saved'"]),
    ("a command for a run that goes on", ("--resume", "gone", "--", *OUT), ["--resume", "t.py"]),
]


@pytest.mark.parametrize(("arguments", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_input_gets_one_sentence(run, asked, tmp_path, arguments, parts):
    """Exit code 2 and a sentence with the value and the next step; nothing is run, nothing is made."""
    result = run("fuzz", *arguments)
    assert result.code == 2, result.err
    assert result.out == ""
    for part in parts:
        assert part in " ".join(result.err.split()), result.err
    assert asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranks", ["0", "-1", "2,", "a", "1.5", "2;1", "", " "])
def test_ranks_that_are_no_numbers(run, asked, ranks):
    """Anything but whole numbers from 1 on is refused with itself in the words."""
    result = run("fuzz", "--ranks", ranks, "--", *OUT, "{nproc}")
    assert result.code == 2
    assert repr(ranks) in result.err
    assert "2,3,1" in result.err
