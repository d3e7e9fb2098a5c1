"""Labels of a command's operations: which save or recovery each belongs to, however its ranks raced."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosckpt.commands.labels import ends_of_saves, labelled, points
from chaosckpt.commands.naming import Naming
from chaosckpt.model.operation import Address, Operation

NAMING = Naming("{out}/ckpt-*")


def op(name: str, path: str, destination: str | None = None, rank: int = 0) -> Operation:
    return Operation(address=Address(rank, "main", name, path, 1, 0), sequence=1, raw=path, destination=destination)


def written(path: str, rank: int = 0) -> list[Operation]:
    return [op("open_write", path, rank=rank), op("write", path, rank=rank), op("close", path, rank=rank)]


def words(trace: list[Operation]) -> list[str]:
    return [str(label or "-") for label in labelled(trace, NAMING)]


def test_a_temporary_file_belongs_to_the_step_of_its_final_name():
    """Through any chain of renames, of files or of the directory above them, from wherever."""
    trace = [
        *written("tmp:x7f"),
        op("rename", "tmp:x7f", "out:staging/model"),
        *written("out:staging/rng"),
        op("rename", "out:staging", "out:ckpt-6"),
    ]
    assert set(words(trace)) == {"persist of save 6"}


def test_a_temporary_name_is_used_again():
    """Each use of the same temporary name belongs to what it became then."""
    trace = [op for step in (2, 4) for op in [*written("out:new"), op_rename("out:new", f"out:ckpt-{step}")]]
    assert words(trace) == ["persist of save 2"] * 4 + ["persist of save 4"] * 4


def op_rename(source: str, destination: str, rank: int = 0) -> Operation:
    return op("rename", source, destination, rank)


def test_recovery_ends_with_the_first_save():
    """Looking and reading before the first save are the recovery; other files are nobody's."""
    trace = [op("list", "out:."), op("stat", "out:ckpt-2"), op("read", "out:ckpt-2"), op("read", "out:ckpt-2")]
    trace += [op("write", "out:log.txt"), *written("out:ckpt-4"), op("stat", "out:ckpt-4"), op("stat", "out:other")]
    found = ["discover of the recovery"] * 2 + ["load of the recovery"] * 2 + ["-"] + ["persist of save 4"] * 4 + ["-"]
    assert words(trace) == found


def test_rotation_and_cleaning_up():
    """Removing another step's files is retention of the save under way; before any save it is part of the recovery."""
    trace = [
        op("unlink", "out:ckpt-6"),
        *written("out:ckpt-4"),
        op("unlink", "out:ckpt-2"),
        op("unlink", "out:ckpt-4/t"),
    ]
    found = ["discover of the recovery"] + ["persist of save 4"] * 3 + ["retire of save 4", "persist of save 4"]
    assert words(trace) == found


def test_looking_at_what_is_removed():
    """A walk through the directory of a step that this save removes is retention, and a look at one that stays isn't."""
    trace = [*written("out:ckpt-2/a"), *written("out:ckpt-4/a"), op("stat", "out:ckpt-2/a"), *written("out:ckpt-6/a")]
    trace += [
        op("stat", "out:ckpt-4"),
        op("list", "out:ckpt-2"),
        op("unlink", "out:ckpt-2/a"),
        op("rmdir", "out:ckpt-2"),
    ]
    found = words(trace)
    assert found[6] == "persist of save 4"
    assert found[-4:] == ["persist of save 6"] + ["retire of save 6"] * 3


def test_removing_the_only_one_before_the_next_is_saved():
    """The whole entry of a finished save that is removed is retention, with all in it; a marker that is taken out of it is not."""
    marked = [*written("out:ckpt-2/a"), op("unlink", "out:ckpt-2/.incomplete")]
    removed = [op("unlink", "out:ckpt-2/a"), op("rmdir", "out:ckpt-2")]
    assert words([*marked, *removed, *written("out:ckpt-4/a")])[3:6] == ["retire of save 2"] * 3
    assert words([*marked, *written("out:ckpt-4/a")])[3] == "persist of save 2"
    assert ends_of_saves([*written("out:ckpt-2/a"), *removed, *written("out:ckpt-4/a")], NAMING) == {2: 2, 4: 7}


def test_a_directory_that_is_closed_when_it_is_removed():
    """To remove a directory it is opened, read and closed: that is no save of its step."""
    look = msgspec.structs.replace(op("open_read", "out:ckpt-2"), handle=9)
    shut = msgspec.structs.replace(op("close", "out:ckpt-2"), handle=9)
    removed = [look, op("unlink", "out:ckpt-2/a"), shut, op("rmdir", "out:ckpt-2")]
    trace = [*written("out:ckpt-2/a"), *written("out:ckpt-4/a"), *removed, *written("out:ckpt-6/a")]
    assert words(trace)[6:10] == ["retire of save 4", "retire of save 4", "-", "retire of save 4"]
    assert ends_of_saves(trace, NAMING) == {2: 2, 4: 5, 6: 12}


def test_a_pointer_is_the_commit():
    """A file that is made anew once after every save belongs to it, under its temporary name, too; the result does not."""
    trace = []
    for step in (2, 4):
        trace += [*written(f"out:ckpt-{step}"), *written("out:latest.tmp"), op_rename("out:latest.tmp", "out:latest")]
    trace += written("out:final.pt")
    assert words(trace)[3:7] == ["commit of save 2"] * 4
    assert words(trace)[10:] == ["commit of save 4"] * 4 + ["-"] * 3
    assert ends_of_saves(trace, NAMING) == {2: 6, 4: 13}


def test_a_pointer_that_is_copied_in_from_another_file_system_is_the_commit():
    """The rename that fails before makes nothing, so that the file is made once a save."""
    trace = []
    for step in (2, 4):
        for name in (f"ckpt-{step}", "latest"):
            moved = msgspec.structs.replace(op_rename("tmp:drawn", f"out:{name}"), result=-18)
            trace += [*written("tmp:drawn"), moved, *written(f"out:{name}"), op("unlink", "tmp:drawn")]
    assert ends_of_saves(trace, NAMING) == {2: 14, 4: 30}
    assert words(trace)[12:15] == ["commit of save 2"] * 3
    assert words(trace)[20:23] == ["persist of save 4"] * 3


def test_a_symbolic_link_is_the_commit():
    """So is a link to the newest that is made anew."""
    trace = []
    for step in (2, 4):
        trace += [*written(f"out:ckpt-{step}"), op("unlink", "out:last"), op("symlink", "out:last", f"ckpt-{step}")]
    assert words(trace)[3:5] == ["commit of save 2"] * 2


def test_a_log_is_no_commit():
    """What is written more often than once after a save, or not after each, belongs to none."""
    often = [o for step in (2, 4) for o in [*written(f"out:ckpt-{step}"), *written("out:log"), *written("out:log")]]
    once = [*written("out:ckpt-2"), *written("out:log"), *written("out:ckpt-4")]
    held = [op("open_write", "out:log"), *written("out:ckpt-2"), op("write", "out:log"), *written("out:ckpt-4")]
    for trace in (often, once, [*held, op("write", "out:log")]):
        assert not [word for word in words(trace) if "commit" in word]


def test_points_are_what_has_a_label():
    """The census has the labelled operations, with their lengths."""
    trace = [op("write", "out:log"), *written("out:ckpt-2")]
    assert [point.address.op for point in points(trace, NAMING)] == ["open_write", "write", "close"]


@st.composite
def lives(draw: st.DrawFn) -> list[list[Operation]]:
    """What two ranks do: each recovers, then saves by one of several protocols, with rotation, a pointer and a log."""
    found = []
    protocol = draw(st.sampled_from(["direct", "rename", "directory"]))
    pointer = draw(st.booleans())
    for rank in (0, 1):
        trace = [op("list", "out:.", rank=rank), op("read", "out:ckpt-2/rng", rank=rank)]
        for step in draw(st.sampled_from([(4,), (4, 6), (4, 6, 8)])):
            trace.append(op("write", "out:log", rank=rank))
            if protocol == "direct":
                trace += written(f"out:ckpt-{step}/rng-{rank}", rank)
            elif protocol == "rename":
                temporary = f"out:new-{rank}-{step}"
                trace += [*written(temporary, rank), op_rename(temporary, f"out:ckpt-{step}/rng-{rank}", rank)]
            else:
                temporary = f"out:{rank}-of-{step}"
                trace += [*written(f"{temporary}/rng", rank), op_rename(temporary, f"out:ckpt-{step}/{rank}", rank)]
            if pointer and rank == 0:
                trace += written("out:latest", rank)
            trace.append(op("unlink", f"out:ckpt-{step - 2}/rng-{rank}", rank=rank))
        found.append(trace)
    return found


@settings(max_examples=100, deadline=None)
@given(lives(), st.data())
def test_labels_do_not_depend_on_which_rank_was_faster(found, data):
    """However the operations of the ranks are interleaved, each has the same label."""
    alone = [labelled([*found[0], *found[1]], NAMING), labelled([*found[1], *found[0]], NAMING)]
    count = len(found[0])
    assert alone[0] == [*alone[1][len(found[1]) :], *alone[1][: len(found[1])]]
    order = data.draw(st.permutations([0] * count + [1] * len(found[1])))
    places, mixed = [0, 0], []
    for rank in order:
        mixed.append((rank, places[rank]))
        places[rank] += 1
    labels = labelled([found[rank][place] for rank, place in mixed], NAMING)
    expected = {0: alone[0][:count], 1: alone[0][count:]}
    assert labels == [expected[rank][place] for rank, place in mixed]


@settings(max_examples=100, deadline=None)
@given(lives())
def test_every_save_has_an_end(found):
    """Each step that is saved ends at an operation of its own, in the order of the steps."""
    trace = found[0]
    ends = ends_of_saves(trace, NAMING)
    labels = labelled(trace, NAMING)
    assert list(ends) == sorted({label.step for label in labels if label is not None and label.step is not None})
    for step, place in ends.items():
        label = labels[place]
        assert label is not None
        assert (label.step, label.stage != "retire") == (step, True)
    assert list(ends.values()) == sorted(ends.values())
