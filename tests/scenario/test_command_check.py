"""Commands in scenarios: what is refused gets one sentence, with the value and the next step; what is read stays what it was."""

from __future__ import annotations

import sys

import msgspec
import pytest

from chaosckpt.errors import UsageError
from chaosckpt.scenario import load as scenario
from chaosckpt.scenario.load import to_toml

ARGV = 'argv = ["python3", "t.py", "{out}"]'
BASE = f'name = "x"\n[command]\n{ARGV}\n'
CASES = [
    ("no words", 'name = "x"\n[command]\nargv = []', ["no words", "python train.py --out {out}"]),
    ("no argv", 'name = "x"\n[command]\n', ["'command.argv' is missing"]),
    ("argv as a string", 'name = "x"\n[command]\nargv = "python t.py"', ["command.argv = 'python t.py'", "a list"]),
    ("no {out}", 'name = "x"\n[command]\nargv = ["python3", "t.py"]', ["'python3 t.py'", "no {out}"]),
    ("no such command", 'name = "x"\n[command]\nargv = ["nosuch", "{out}"]', ["no command 'nosuch'", "PATH"]),
    ("no such file", 'name = "x"\n[command]\nargv = ["./nosuch", "{out}"]', ["no file './nosuch'"]),
    ("not executable", 'name = "x"\n[command]\nargv = ["./mine.toml", "{out}"]', ["can't be executed", "interpreter"]),
    ("unknown key", BASE + 'resummed = "x"', ["'command.resummed'", "'resumed'"]),
    ("wrong type", BASE + "cold = 1", ["command.cold = 1", "true or false"]),
    ("glob elsewhere", BASE + 'checkpoints = "ckpt-*"', ["'ckpt-*'", "must begin with {out}/"]),
    ("glob of a directory", BASE + 'checkpoints = "{out}/"', ["'{out}/'", "must begin with {out}/"]),
    ("no group", BASE + 'resumed = "from step"', ["--resumed", "'from step'", "no group"]),
    ("two groups", BASE + "saved = '(a)(b)'", ["--saved", "'(a)(b)'", "2 groups"]),
    ("no expression", BASE + "saved = '('", ["--saved", "'('", "not a valid regular expression"]),
    ("result elsewhere", BASE + 'result = "final.pt"', ["'final.pt'", "below {out}"]),
    ("result is a directory", BASE + 'result = "{out}/"', ["'{out}/'", "a file"]),
    ("two results", BASE + 'result = "{out}/f"\nresult_command = "cat f"', ["'{out}/f'", "'cat f'", "one of them"]),
    ("tolerance of a file", BASE + 'result = "{out}/f"\ntolerance = 0.1', ["0.1", "--result-cmd"]),
    ("empty result command", BASE + 'result_command = ""', ["--result-cmd", "is empty"]),
    ("open quotes", BASE + 'result_command = "cat \'"', ["--result-cmd", "can't be split"]),
    ("no such directory", BASE + 'track = ["nosuch"]', ["--track", "'nosuch'", "not a directory"]),
    ("two subjects", BASE + '[target]\nuse = "dcp"', ["target.use = 'dcp'", "[command]", "one of them"]),
    ("two nodes", BASE + "[topology]\nranks = [[1, 1]]", ["[1, 1]", "one node", "[[2]]"]),
    ("no {nproc}", BASE + "[topology]\nranks = [[2], [1]]", ["no {nproc}", "--nproc-per-node {nproc}"]),
    ("a target's launch", BASE + '[run]\nlaunch = "exec"', ["run.launch = 'exec'", "[command]", "cold = true"]),
    (
        "a target's fresh start",
        BASE + '[run]\nfresh_start = "allowed"',
        ["run.fresh_start = 'allowed'", "[command]", "leave it out"],
    ),
    ("no gate", BASE + '[run]\ngate = "none"', ["run.gate = 'none'", "leave it out"]),
    ("a target's workload", BASE + "[workload]\nsteps = 9", ["workload.steps = 9", "leave [workload] out"]),
    ("no subject", 'name = "x"', ["'target'", "'command'", "[command]"]),
]


@pytest.mark.parametrize(("text", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_input_gets_one_sentence(tmp_path, text, parts):
    """The sentence names the file, the offending value and what to do."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        scenario.read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert "msgspec" not in message
    for part in (str(path), *parts):
        assert part in message, message


def test_what_a_command_does_not_heed_may_stand_at_its_default(tmp_path):
    """A scenario as it is stored names every table; only another value than the usual one would be ignored in silence."""
    path = tmp_path / "mine.toml"
    path.write_text(BASE + '[run]\nlaunch = "fork"\nfresh_start = "refused"\n[workload]\nsteps = 6\n')
    assert scenario.read(path).run.launch == "fork"


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (["t.py"], 1),
        (["--nproc-per-node", "2", "t.py"], 2),
        (["--nproc_per_node=3", "t.py"], 3),
        (["--nproc-per-node", "gpu"], 1),
        (["--nproc-per-node"], 1),
    ],
)
def test_ranks_by_the_commands_own_words(words, ranks):
    """Without a topology a command's ranks are those that torchrun's option in it tells, else one."""
    found = scenario.parse({"name": "x", "command": {"argv": [sys.executable, *words, "{out}"]}})
    assert found.topology.ranks == ((ranks,),)


def test_a_command_reads_back_as_it_was(tmp_path):
    """Its scenario as TOML, in a run or a finding, is the same scenario, with the directory that it was read from."""
    text = (
        BASE
        + "checkpoints = '{out}/c-*'\nresumed = 'step (\\d+)\\.'\nresume_argv = ['--resume']\n[topology]\nranks = [[2]]"
    )
    (tmp_path / "mine.toml").write_text(text)
    found = scenario.read(tmp_path / "mine.toml")
    assert found.command is not None
    assert found.command.directory == str(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "again.toml").write_text(to_toml(found))
    assert scenario.read(tmp_path / "sub" / "again.toml") == found
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
