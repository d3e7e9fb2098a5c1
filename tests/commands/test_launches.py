"""Learned launches: which of the processes that a launcher starts are ranks, and what each is started with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chaosckpt.commands.launches import (
    DIRECTORY,
    ERROR_FILE,
    HOOK,
    PORT,
    Executed,
    LearnedLaunch,
    Warmth,
    launcher_of,
    learn,
    script_of,
)

HOME = "/env/bin"
ARENA = "/tmp/arena-1"
COMMAND = ("torchrun", "--nproc-per-node", "2", "train.py")


def rank(number: int | None, argv: Sequence[str] = (f"{HOME}/python", "-u", "train.py"), **more: str) -> Executed:
    """A process as torchrun starts it, beside what is given."""
    environment = (
        {} if number is None else {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "2", PORT: "29500"}
    )
    return Executed(100 + (number or 0), number, tuple(argv), environment | more, ARENA)


def learned(*seen: Executed, command: Sequence[str] = COMMAND) -> LearnedLaunch:
    found = learn(seen, command, ARENA, HOME)
    assert isinstance(found, LearnedLaunch), found
    return found


def why_not(*seen: Executed) -> str:
    found = learn(seen, COMMAND, ARENA, HOME)
    assert isinstance(found, str)
    return found


def test_each_rank_has_its_own_words_and_its_whole_environment() -> None:
    """Goal: nothing of what a launcher gives its ranks is lost, whatever it is; the arena's directory may stand anywhere in it."""
    found = learned(
        rank(1, (f"{HOME}/python3", "-u", "train.py", "--out", f"{ARENA}/out"), KMP_BLOCKTIME="1"),
        rank(
            0, (f"{HOME}/python3", "-u", "train.py", "--out", f"{ARENA}/out"), TMPDIR=f"{ARENA}/tmp", KMP_BLOCKTIME="1"
        ),
    )
    assert found.launcher == "torchrun"
    assert [one.environment["RANK"] for one in found.ranks] == ["0", "1"]
    assert found.ranks[0].argv[-1] == f"{DIRECTORY}/out"
    elsewhere = found.placed("/tmp/arena-2")
    assert elsewhere.ranks[1].argv[-1] == "/tmp/arena-2/out"
    assert elsewhere.ranks[0].environment["TMPDIR"] == "/tmp/arena-2/tmp"
    assert found.common == {"KMP_BLOCKTIME": "1", "WORLD_SIZE": "2"}, "no rank's number, and no port"
    assert found.resuming(["--resume"]).ranks[1].argv[-1] == "--resume"


@pytest.mark.parametrize(
    "phantom",
    [
        (f"{HOME}/python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"),
        (f"{HOME}/python", "-c", "from multiprocessing.resource_tracker import main;main(7)"),
        ("/bin/sh", "-c", "uname"),
    ],
)
def test_what_a_rank_starts_is_no_rank(phantom: Sequence[str]) -> None:
    """Goal: loader workers and trackers carry RANK and WORLD_SIZE, too."""
    found = learned(rank(1, phantom), rank(0), rank(1), rank(0, phantom))
    assert [one.argv[1:] for one in found.ranks] == [("-u", "train.py")] * 2


def test_the_parent_of_ranks_that_a_script_starts_itself_is_told_that_it_was_started() -> None:
    """Goal: Lightning's own launcher gives its children LOCAL_RANK, and its own process nothing: that would start them once more."""
    child = Executed(
        2, 1, (f"{HOME}/python", "train.py"), {"LOCAL_RANK": "1", "WORLD_SIZE": "2", "NODE_RANK": "0"}, ARENA
    )
    parent = Executed(1, 0, (f"{HOME}/python", "train.py"), {"HOME": "/root"}, ARENA)
    found = learned(parent, child, command=("python", "train.py"))
    assert found.launcher == "the script itself"
    assert found.ranks[0].environment == {"HOME": "/root", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "NODE_RANK": "0"}


def test_what_was_set_to_watch_a_launch_is_no_part_of_it() -> None:
    """Goal: a warm rank neither reports its modules, nor writes where an earlier launch had its error file."""
    found = learned(
        rank(
            0,
            **{HOOK: f"{ARENA}/logs/hook", "PYTHONPATH": "/x/hook:/mine", ERROR_FILE: "/tmp/torchelastic_1/error.json"},
        ),
        rank(1),
    )
    environment = found.ranks[0].environment
    assert HOOK not in environment
    assert environment["PYTHONPATH"] == "/mine"
    assert environment[ERROR_FILE] == f"{DIRECTORY}/logs/error-0.json"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([], "no process said which rank it is"),
        ([rank(None)], "no process said which rank it is"),
        ([rank(1)], "no process of rank 0"),
        ([rank(0)], "1 ranks were seen, but WORLD_SIZE said 2"),
        ([rank(0), rank(1, ("/other/bin/python", "train.py"))], "rank 1 runs in another Python than chaosckpt's"),
    ],
)
def test_a_launch_that_cannot_be_learned_is_told(seen: Sequence[Executed], why: str) -> None:
    """Goal: a wrong set of ranks would hang; each reason is the end of a sentence."""
    assert why in why_not(*seen)


def test_there_is_a_launch_for_each_number_of_ranks_that_was_seen() -> None:
    """Goal: a world size that was never launched is launched by the user's launcher."""
    two = learned(rank(0), rank(1))
    warmth = Warmth(modules=("json",), launches=(two,))
    assert warmth.launch(2) is two
    assert warmth.launch(3) is None


@pytest.mark.parametrize(
    ("argv", "launcher"),
    [
        (("torchrun", "x.py"), "torchrun"),
        (("/env/bin/torchrun", "x.py"), "torchrun"),
        (("python", "-m", "torch.distributed.run", "x.py"), "torchrun"),
        (("python3.12", "-u", "/env/bin/torchrun", "x.py"), "torchrun"),
        (("accelerate", "launch", "x.py"), "accelerate"),
        (("python", "accelerate_state.py"), "the script itself"),
        (("bash", "run.sh"), "bash"),
    ],
)
def test_a_launcher_is_named(argv: Sequence[str], launcher: str) -> None:
    """Goal: a script called accelerate_state.py is no launcher."""
    assert launcher_of(argv) == launcher


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (("python", "x.py", "-m"), ("x.py", False, ("-m",))),
        (("python", "-u", "-m", "x", "a"), ("x", True, ("a",))),
        (("python", "-c", "pass"), None),
        (("python", "-O", "x.py"), None),
        (("python",), None),
    ],
)
def test_a_script_is_told_from_other_ways_to_run_python(argv: Sequence[str], script: object) -> None:
    """Goal: what a warm interpreter can't do as a cold one does is left to a cold one."""
    assert script_of(argv) == script
