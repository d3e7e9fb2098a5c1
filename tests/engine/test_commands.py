"""Unmodified commands under the gate: forked and cold alike, whatever they use to write, and never outside what is theirs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from chaosckpt.engine.golden.rewind import rewind
from chaosckpt.engine.runner.command_arena import files_in_out
from chaosckpt.engine.subjects import subject_of
from chaosckpt.model.operation import Operation
from tests.engine.scripts import COUNTING, arena_for, out_of, python, run_once, scenario_of
from tests.waiting import holds_within


def addresses(trace: tuple[Operation, ...]) -> list[str]:
    return [str(operation.address) for operation in trace if operation.address.path.startswith("out:")]


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    script = tmp_path / "count.py"
    script.write_text(COUNTING)
    return script


def test_a_forked_script_does_the_same_operations_as_a_cold_one(counting: Path) -> None:
    """Goal: the warm interpreter is not to be told from a cold one by what the script does to storage."""
    argv = python(counting, "{out}")
    traces, outputs = [], []
    for cold in (False, True):
        scenario = scenario_of(argv, counting.parent, cold=cold)
        with arena_for(scenario) as arena:
            assert subject_of(scenario).launch() == ("exec" if cold else "fork")
            run = run_once(scenario, arena)
            assert run.outcome == "finished", run.output
            traces.append(addresses(run.trace))
            outputs.append(run.output)
    assert traces[0] == traces[1] != []
    assert outputs[0] == outputs[1] == "saved step 2\nsaved step 4\nsaved step 6\n"


LOOK = """
import atexit, os, sys, threading, tempfile
import helper_beside
assert __name__ == "__main__" and sys.argv == [__file__, "a", "b c"], sys.argv
assert not [name for name in sys.modules if name.startswith("chaosckpt")]
assert sys.modules["__main__"].__dict__ is globals()
assert sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.path[:2]
assert tempfile.gettempdir() == os.environ["TMPDIR"]
assert os.getcwd() == os.path.dirname(os.path.abspath(__file__))
assert len(os.listdir("/proc/self/task")) == 1
thread = threading.Thread(target=lambda: print("a thread is awaited"))
thread.start()
atexit.register(print, "at exit")
open(os.environ["TMPDIR"] + "/x", "w").close()
sys.exit(int(OUT_CODE))
"""


@pytest.mark.parametrize("code", [0, 7])
def test_the_interpreter_looks_empty_and_ends_like_a_cold_one(tmp_path: Path, code: int) -> None:
    """Goal: argv, cwd, sys.path, __main__, threads, exit handlers and the exit code are those of `python script.py`."""
    (tmp_path / "helper_beside.py").write_text("")
    script = tmp_path / "look.py"
    script.write_text(LOOK.replace("OUT_CODE", str(code)))
    scenario = scenario_of((sys.executable, "look.py", "a", "b c"), tmp_path)
    script.write_text(script.read_text().replace("[__file__,", '["look.py",'))
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
    assert (run.outcome == "finished") == (code == 0), run.output
    assert run.output.splitlines() == ["a thread is awaited", "at exit"]


def test_an_error_prints_the_script_s_own_traceback_and_exits_with_one(tmp_path: Path) -> None:
    """Goal: what a person reads of a failing script has no frame of the harness in it."""
    script = tmp_path / "fails.py"
    script.write_text("def deep():\n    raise ValueError('no good')\ndeep()\n")
    scenario = scenario_of(python(script, "{out}"), tmp_path)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
    assert run.outcome == "failed"
    assert "ValueError: no good" in run.output
    assert "chaosckpt" not in run.output


@pytest.mark.parametrize(("words", "unbuffered", "said"), [((), "1", True), (("-u",), "", True), ((), "", False)])
def test_what_was_said_before_a_death_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], unbuffered: str, said: bool
) -> None:
    """Goal: a line that a script prints is not lost with it, forked or cold, unless its user asked for buffers."""
    script = tmp_path / "dies.py"
    script.write_text("import os\nprint('saved step 2')\nos.kill(os.getpid(), 9)\n")
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    for cold in (False, True):
        scenario = scenario_of((sys.executable, *words, str(script), "{out}"), tmp_path, cold=cold)
        with arena_for(scenario) as arena:
            assert subject_of(scenario).launch() == ("exec" if cold else "fork")
            run = run_once(scenario, arena)
        assert run.outcome == "failed"
        assert run.output == ("saved step 2\n" if said else "")


LATE = """
import atexit, os, pickle, sys, threading
class State:
    pass
def save(name):
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        pickle.dump(State(), file)
def work():
    threading.main_thread().join()
    save("thread")
if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    threading.Thread(target=work).start()
    atexit.register(save, "exit")
    print(os.path.isabs(__file__), __package__, __spec__ and __spec__.name)
"""


@pytest.mark.parametrize("words", [("late.py",), ("./late.py",), ("-m", "late"), ("-m", "late_package")])
def test_a_script_stays_the_main_module_behind_its_last_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Goal: a thread that still saves, and a function at exit, pickle what the script defines, as in a cold interpreter."""
    (tmp_path / "late.py").write_text(LATE)
    (tmp_path / "late_package").mkdir()
    for name, text in (("__init__", ""), ("__main__", LATE)):
        (tmp_path / "late_package" / f"{name}.py").write_text(text)
    seen = []
    for cold in (False, True):
        scenario = scenario_of((sys.executable, *words, "{out}"), tmp_path, cold=cold)
        with arena_for(scenario) as arena:
            run = run_once(scenario, arena)
            assert run.outcome == "finished", run.output
            seen.append((run.output, run.files))
    assert seen[0] == seen[1]
    assert [path for path, *_ in seen[0][1]] == ["out:exit", "out:thread"]


WRITERS = {
    "redirection": "sh -c 'echo hello > $0/file' {out}",
    "cp": "sh -c 'echo hello > $TMPDIR/source; cp $TMPDIR/source $0/file' {out}",
    "mv": "sh -c 'echo hello > $TMPDIR/source; mv $TMPDIR/source $0/file' {out}",
    "append": "sh -c 'echo hel > $0/file; echo lo >> $0/file' {out}",
}


@pytest.mark.parametrize("how", sorted(WRITERS))
def test_what_programs_of_a_shell_write_is_traced(tmp_path: Path, how: str) -> None:
    """Goal: redirections, copies and moves are operations like all others."""
    import shlex

    scenario = scenario_of(shlex.split(WRITERS[how]), tmp_path)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
        assert run.outcome == "finished", run.output
        assert (out_of(arena) / "file").read_text().replace("\n", "") == "hello"
    seen = {(operation.address.op, operation.address.path) for operation in run.trace}
    made = {("open_write", "out:file"), ("rename", "out:file"), ("rename", "tmp:source")}
    assert seen & made, seen
    if how != "mv":
        assert ("write", "out:file") in seen


CHILD = """
import os, shutil, subprocess, sys
out = sys.argv[1]
file = open(out + "/file", "w")
file.write("hello")
file.flush()
subprocess.run([sys.executable, "-c", "pass"], close_fds=True, check=True)
pid = os.fork()
if pid == 0:
    file.close()
    os._exit(0)
os.waitpid(pid, 0)
file.write("!")
file.close()
shutil.copyfile(out + "/file", out + "/copy")
"""


def test_a_child_that_closes_what_it_inherited_does_not_hide_its_parent_s_writes(tmp_path: Path) -> None:
    """Goal: after a child has closed its copy of a descriptor, the parent's file is traced to its own close."""
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    scenario = scenario_of(python(script, "{out}"), tmp_path)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
        assert run.outcome == "finished", run.output
        assert (out_of(arena) / "copy").read_text() == "hello!"
    ops = [operation.address.op for operation in run.trace if operation.address.path == "out:file"]
    assert ops.count("write") == 2
    assert ops.count("close") >= 1
    assert ops.index("close") > max(place for place, op in enumerate(ops) if op == "write")
    assert any(operation.address.path == "out:copy" for operation in run.trace)


OUTSIDE = """
import os, socket, sys
place = sys.argv[2]
for what in (lambda: open(place + "/new", "w"), lambda: os.unlink(place + "/old"), lambda: os.rename(place + "/old", place + "/x"),
             lambda: os.truncate(place + "/old", 0)):
    try:
        what()
    except PermissionError:
        print("refused")
try:
    socket.create_connection(("192.0.2.1", 9), timeout=5)
except OSError as error:
    print("unreachable" if error.errno == 101 else error)
with socket.socket() as server, socket.socket() as client:
    server.bind(("127.0.0.1", 0))
    server.listen()
    client.connect(server.getsockname())
    print("loopback")
"""


def test_nothing_outside_is_changed_and_no_other_machine_reached(tmp_path: Path) -> None:
    """Goal: the files of a user and the network are safe from a script that is run hundreds of times; it is said what was refused."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "old").write_text("kept")
    script = tmp_path / "outside.py"
    script.write_text(OUTSIDE)
    scenario = scenario_of(python(script, "{out}", str(precious)), tmp_path)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
    assert run.output.split() == ["refused"] * 4 + ["unreachable", "loopback"]
    assert [path.name for path in precious.iterdir()] == ["old"]
    assert (precious / "old").read_text() == "kept"
    assert len(run.refused) == 5
    assert any("192.0.2.1" in refusal for refusal in run.refused)


def test_what_is_allowed_is_let_through(tmp_path: Path) -> None:
    """Goal: --allow means what it says."""
    script = tmp_path / "writes.py"
    script.write_text("import sys; open(sys.argv[2], 'w').write('x')")
    scenario = scenario_of(python(script, "{out}", str(tmp_path / "mine")), tmp_path, allow=True)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
    assert run.outcome == "finished", run.output
    assert (tmp_path / "mine").read_text() == "x"


LEAVES = """
import subprocess
print(subprocess.Popen(["sleep", "300"], start_new_session=True).pid)
"""


@pytest.mark.parametrize("cold", [False, True])
def test_what_a_script_leaves_running_ends_with_it(tmp_path: Path, cold: bool) -> None:
    """Goal: a child in a session of its own, which no signal to the command reaches, outlives no attempt."""
    script = tmp_path / "leaves.py"
    script.write_text(LEAVES)
    scenario = scenario_of(python(script, "{out}"), tmp_path, cold=cold)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena)
        assert run.outcome == "finished", run.output
        left = Path(f"/proc/{int(run.output)}/exe")
        assert holds_within(20, lambda: not left.exists())  # a busy machine takes its time to end what was killed


CLOSING = """
import os, sys
os.closerange(3, 4096)
held = os.open(os.devnull, os.O_RDONLY)
print("first number", held, sys.stdin.read() == "", flush=True)
with open(sys.argv[1] + "/ckpt-1", "w") as file:
    file.write("one")
"""


@pytest.mark.parametrize("cold", [False, True])
def test_a_script_may_close_every_descriptor(tmp_path: Path, cold: bool) -> None:
    """Goal: as a daemon does it: nothing of the harness's is among them, and what it had imported is known all the same."""
    script = tmp_path / "closing.py"
    script.write_text(CLOSING)
    scenario = scenario_of(python(script, "{out}"), tmp_path, cold=cold)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena, learns=cold)
        assert (run.outcome, run.output) == ("finished", "first number 3 True\n")
        assert ("os" in run.modules) is cold


FRESH = r"""
import os, shutil, sys
out = os.fsencode(sys.argv[1])
shutil.rmtree(out)
os.makedirs(out)
os.mkdir(out + b"/d\xff")
for name in (b"/caf\xe9", b"/d\xff/new\nline", b"/" + b"x" * 255):
    open(out + name, "w").close()
os.rename(out + b"/caf\xe9", out + b"/d\xff/\xfe")
os.symlink(b"\xfd", out + b"/link")
"""


def test_a_fresh_start_and_names_that_are_bytes(tmp_path: Path) -> None:
    """Goal: a root that is removed and made again, and names of any bytes, are traced, listed and put back."""
    script = tmp_path / "fresh.py"
    script.write_text(FRESH)
    scenario = scenario_of(python(script, "{out}"), tmp_path, cold=False)
    with arena_for(scenario) as arena:
        run = run_once(scenario, arena, record="data")
        assert run.outcome == "finished", run.output
        left = files_in_out(arena)
        rewind(arena, run.trace, 0)
        assert files_in_out(arena) == left
        place = os.fsencode(out_of(arena))
        entries = [os.path.relpath(base + b"/" + name, place) for base, _, names in os.walk(place) for name in names]
        assert sorted(entries) == sorted([b"d\xff/\xfe", b"d\xff/new\nline", b"x" * 255, b"link"])
