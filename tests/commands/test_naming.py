"""Checkpoints by their names: which step a path belongs to, what makes a step complete, and which glob files suggest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosckpt.commands.completeness import standard
from chaosckpt.commands.naming import ROLLING, UNSAVED, Naming, by_step, guessed

FILES = st.dictionaries(
    st.sampled_from([f"out:ckpt-{step}/{name}" for step in (2, 4) for name in ("model.pt", "rng-0.pt", "state.json")]),
    st.tuples(st.integers(1, 99), st.sampled_from(["aa", "bb"])),
    min_size=1,
)
NAMING = Naming("{out}/ckpt-*")


def steps(files: dict[str, tuple[int, str]]) -> dict[int, dict[str, tuple[int, str]]]:
    return by_step([(path, *seen) for path, seen in files.items()], NAMING)


@pytest.mark.parametrize(
    ("glob", "path", "belongs", "entry"),
    [
        ("{out}/ckpt-*.pt", "out:ckpt-6.pt", 6, 6),
        ("{out}/ckpt-*.pt", "out:ckpt-000006.pt", 6, 6),
        ("{out}/ckpt-*.pt", "out:ckpt-60.pt", 60, 60),
        ("{out}/ckpt-*.pt", "out:ckpt-6.pt.tmp", 6, None),
        ("{out}/ckpt-*.pt", "out:ckpt-6.tmp", 6, None),
        ("{out}/ckpt-*.pt", "out:ckpt-6.done", 6, None),
        ("{out}/ckpt-*.pt", "out:.ckpt-6.pt.x8a", 6, None),
        ("{out}/ckpt-*.pt", "out:final.pt", None, None),
        ("{out}/ckpt-*.pt", "out:other/ckpt-6.pt", None, None),
        ("{out}/ckpt-*.pt", "tmp:ckpt-6.pt", None, None),
        ("{out}/checkpoint-*", "out:checkpoint-6/model/a.bin", 6, 6),
        ("{out}/checkpoint-*", "out:tmp-checkpoint-6/a.bin", 6, None),
        ("{out}/a/step_*", "out:a/step_6/x", 6, 6),
        ("{out}/epoch=*-step=*.ckpt", "out:epoch=10-step=6.ckpt", 6, 6),
        ("{out}/*/ckpt_*.pt", "out:rank0/ckpt_6.pt", 6, 6),
        ("{out}/*.pt", "out:6.pt", 6, 6),
        ("{out}/*.pt", "out:tmpab12cd", None, None),
    ],
)
def test_names(glob, path, belongs, entry):
    """Temporary names and markers beside a checkpoint belong to its step; only what has the final name is part of it."""
    naming = Naming(glob)
    assert (naming.belongs(path), naming.entry(path)) == (belongs, entry)


@pytest.mark.parametrize("glob", ["ckpt-*", "{out}ckpt-*", "/x/{out}/ckpt-*", "{out}/", "{out}"])
def test_globs_that_say_nothing(glob):
    """A glob that isn't below {out} is refused with itself in the words."""
    with pytest.raises(ValueError, match=r"must begin with"):
        Naming(glob)


def test_a_rolling_checkpoint_is_told_by_its_content():
    """Whose it is says the content; what could be any save's is nobody's, and what differs in size is wrong under the last number."""
    naming, path = Naming("{out}/last.pt"), "out:last.pt"
    runs = [{2: {path: (5, "a")}, 4: {path: (5, "b")}}, {4: {path: (5, "c")}}]
    measured = standard(runs)
    assert not measured.alike()
    for digest, step in (("a", 2), ("b", 4), ("c", 4)):
        assert measured.looked_at({ROLLING: {path: (5, digest)}}, naming, (2, 4)) == {step: None}
    assert measured.looked_at({ROLLING: {path: (5, "d")}}, naming, (2, 4)) == {4: UNSAVED}
    assert measured.looked_at({ROLLING: {path: (3, "a")}}, naming, (2, 4)) == {4: path}
    assert measured.looked_at({}, naming, (2, 4)) == {}
    assert standard([{2: {path: (5, "a")}, 4: {path: (5, "a")}}]).alike()


def test_a_torn_rolling_checkpoint_whose_size_is_another_each_time():
    """Sizes that differ from step to step tell nothing, but steady content does, unless another step may have been saved."""
    naming, path = Naming("{out}/last.pt"), "out:last.pt"
    measured = standard([{2: {path: (5, "a")}, 4: {path: (6, "b")}}, {4: {path: (6, "b")}}])
    torn = {ROLLING: {path: (3, "x")}}
    assert measured.looked_at(torn, naming, (2, 4)) == {4: UNSAVED}
    assert measured.looked_at(torn, naming, (2, 4), as_ever=True) == {4: path}
    more = {ROLLING: {path: (6, "b"), "out:last.pt/x": (1, "y")}}
    assert measured.looked_at(more, naming, (2, 4), as_ever=True) == {4: UNSAVED}
    varied = standard([{2: {path: (5, "a")}, 4: {path: (6, "b")}}, {4: {path: (7, "c")}}])
    assert varied.looked_at(torn, naming, (2, 4), as_ever=True) == {4: UNSAVED}


def test_a_rolling_checkpoint_under_another_name():
    """Whole copies of a file or a directory are found beside it, by their content; parts of one are none."""
    file = standard([{2: {"out:last.pt": (5, "a")}, 4: {"out:last.pt": (5, "b")}}])
    there = [("out:last.pt", 3, "x"), ("out:old/last.pt.bak", 5, "a"), ("out:other", 5, "c")]
    assert file.spare(there, Naming("{out}/last.pt")) == (2,)
    assert file.spare([("out:last.pt", 5, "a")], Naming("{out}/last.pt")) == ()
    tree = standard([{2: {"out:c/m": (5, "a"), "out:c/d/o": (6, "b")}}])
    copy = [("out:c.old/m", 5, "a"), ("out:c.old/d/o", 6, "b")]
    assert tree.spare(copy, Naming("{out}/c")) == (2,)
    assert tree.spare(copy[:1], Naming("{out}/c")) == ()
    assert tree.spare([("out:a/m", 5, "a"), ("out:b/d/o", 6, "b")], Naming("{out}/c")) == ()


@given(st.lists(FILES, min_size=1, max_size=4))
def test_what_a_golden_run_left_is_complete(runs):
    """By the standard of several runs each step of each of these runs is complete, also with more files in it."""
    measured = standard(steps(files) for files in runs)
    for files in runs:
        for step, found in steps(files).items():
            assert measured.differing(step, found) is None
            assert measured.differing(step, {**found, f"out:ckpt-{step}/extra": (1, "cc")}) is None


@given(FILES, st.data())
def test_what_lacks_a_file_is_not_complete(files, data):
    """A step without one of its files is not complete, and that file is named; so is an empty one."""
    measured = standard([steps(files), steps(files)])
    step, found = data.draw(st.sampled_from(sorted(steps(files).items())))
    missing = data.draw(st.sampled_from(sorted(found)))
    assert measured.differing(step, {path: seen for path, seen in found.items() if path != missing}) == missing
    assert measured.differing(step, {**found, missing: (0, "empty")}) == missing


@given(FILES, st.data())
def test_a_torn_file_is_not_complete(files, data):
    """Cut short a file is not as it was: by content, and by size where two runs differ in content only."""
    step, found = data.draw(st.sampled_from(sorted(steps(files).items())))
    path = data.draw(st.sampled_from(sorted(found)))
    torn = {**found, path: (found[path][0] - 1, "torn")}
    other = {**files, path: (found[path][0], "other content")}
    assert standard([steps(files), steps(files)]).differing(step, torn) == path
    assert standard([steps(files), steps(other)]).differing(step, torn) == path


def test_what_differs_from_run_to_run_is_not_held_against_a_step():
    """A kind of file whose content differs in golden runs is judged by size, one whose size differs by being there; in all steps."""
    one = {"out:ckpt-2/log.json": (10, "a"), "out:ckpt-2/w.pt": (50, "w"), "out:ckpt-4/log.json": (11, "b")}
    two = {**one, "out:ckpt-2/log.json": (12, "c")}
    measured = standard([steps(one), steps(two)])
    assert measured.differing(4, {"out:ckpt-4/log.json": (77, "z")}) is None
    assert measured.differing(2, {"out:ckpt-2/log.json": (1, "z"), "out:ckpt-2/w.pt": (50, "x")}) == "out:ckpt-2/w.pt"


def test_a_step_that_no_golden_run_saved():
    """Of such a step, as one saved on a signal, nothing is known, which is told apart from a file that is wrong."""
    assert standard([steps({"out:ckpt-2/a": (1, "a")})]).differing(3, {"out:ckpt-3/a": (1, "a")}) == UNSAVED


@pytest.mark.parametrize(
    ("paths", "glob"),
    [
        (["ckpt-2.pt", "ckpt-4.pt", "final.pt"], "{out}/ckpt-*.pt"),
        (["checkpoint-2/model-1.bin", "checkpoint-2/model-2.bin", "checkpoint-4/model-1.bin"], "{out}/checkpoint-*"),
        (["epoch=0-step=2.ckpt", "epoch=10-step=4.ckpt"], "{out}/epoch=*-step=*.ckpt"),
        (["ckpt-2.h5", "ckpt-4.h5"], "{out}/ckpt-*.h5"),
        (["rank0/ckpt-2.pt", "rank1/ckpt-2.pt", "rank0/ckpt-4.pt"], "{out}/rank*/ckpt-*.pt"),
        (["events.out.1", "events.out.2", "ckpt-2.pt", "ckpt-4.pt"], "{out}/ckpt-*.pt"),
        (["run.log.1", "run.log.2"], None),
        (["final.pt"], None),
        (["ckpt-2.pt"], None),
        ([], None),
    ],
)
def test_guessing(paths, glob):
    """Without a glob of the user's, names that differ in a number suggest one."""
    assert guessed("out:" + path for path in paths) == glob


@given(st.lists(st.text("abc012-/.", max_size=12)))
def test_a_guess_is_a_glob_that_matches(paths):
    """Whatever files there are, a guess can be read, and doesn't depend on their order."""
    glob = guessed("out:" + path for path in paths)
    assert glob == guessed("out:" + path for path in reversed(paths))
    if glob is not None:
        naming = Naming(glob)
        assert any(naming.belongs("out:" + path) is not None for path in paths)
