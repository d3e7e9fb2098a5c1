"""Phrasing: an operation is told as a person would tell it, whatever its address."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosckpt.model.census import Label, Stage
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import NAMES, Address, Role, When, step_address
from chaosckpt.model.phrasing import (
    describe_label,
    describe_operation,
    describe_path,
    describe_trigger,
    ordinal,
    plural,
)

WRITE = Address(0, "main", "write", "out:ckpt-4.pt", 1, 0)


@pytest.mark.parametrize(
    ("address", "label", "said"),
    [
        (WRITE, "persist of save 4", "rank 0's first write to ckpt-4.pt, while saving step 4"),
        (WRITE, "", "rank 0's first write to ckpt-4.pt"),
        (
            Address(1, "main", "read", "shared:.metadata", 0, 1),
            "load of the recovery",
            "rank 1's second read of .metadata, while loading a checkpoint",
        ),
        (
            Address(1, "main", "read", "shared:.metadata", 0, 1),
            str(Label("load", 2)),
            "rank 1's second read of .metadata, while loading step 2",
        ),
        (
            Address(0, "main", "open_write", "shared:rank-0.pt", 2, 0),
            "",
            "rank 0 opening rank-0.pt for writing, in its second version",
        ),
        (
            Address(0, "main", "write", "shared:latest/__0_0.distcp", 2, 10),
            "",
            "rank 0's 11th write to the second version of latest/__0_0.distcp",
        ),
        (
            Address(2, "thread", "write", "local:a.pt", 1, 2),
            "",
            "the third write to a.pt on node-local storage by rank 2's saver thread",
        ),
        (
            Address(2, "child", "rename", "local:a.pt", 0, 1),
            "",
            "rank 2's saver process renaming a.pt on node-local storage for the second time",
        ),
        (Address(0, "main", "list", "shared:.", 0, 0), "", "rank 0's first listing of the shared storage directory"),
        (step_address(0, 3), "", "rank 0 about to train step 3"),
        (
            Address(0, "main", "mark", "stage:savestarted in persist of save 4", 0, 0),
            "",
            "rank 0 starting a save, while saving step 4",
        ),
    ],
)
def test_operations(address, label, said):
    """Ordinals, versions, tiers, threads and labels, each as a person says it."""
    assert describe_operation(address, label) == said


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (Trigger(WRITE), "before rank 0's first write to ckpt-4.pt"),
        (Trigger(WRITE, "after"), "after rank 0's first write to ckpt-4.pt"),
        (Trigger(WRITE, "torn", 3), "after 3 bytes of rank 0's first write to ckpt-4.pt"),
        (Trigger(WRITE, "torn", 1), "after 1 byte of rank 0's first write to ckpt-4.pt"),
        (Trigger(step_address(0, 3)), "before rank 0 trained step 3"),
        (Trigger(Address(0, "main", "rename", "out:a.tmp", 1, 0), "after"), "after rank 0 renamed a.tmp"),
        (
            Trigger(Address(0, "main", "open_write", "shared:a", 2, 0)),
            "before rank 0 opened a for writing, in its second version",
        ),
    ],
)
def test_triggers(trigger, said):
    """What happens before or after an operation told by a verb is a clause."""
    assert describe_trigger(trigger) == said


def test_a_triggers_label_says_what_the_rank_was_doing():
    """It stands at the end, as with an operation."""
    said = "before rank 0's first write to ckpt-4.pt, while saving step 4"
    assert describe_trigger(Trigger(WRITE), "persist of save 4") == said


@pytest.mark.parametrize("stage", get_args(Stage))
@pytest.mark.parametrize("step", [None, 4])
def test_every_label_is_told(stage, step):
    """No label of the census is left without words, and a save's names its step."""
    said = describe_label(str(Label(stage, step)))
    assert said.startswith(("while ", "during "))
    assert step is None or "step 4" in said


def test_paths_tell_node_local_storage_only():
    """A person knows the shared directory by the path alone."""
    assert describe_path("shared:step-2/a") == describe_path("out:step-2/a") == "step-2/a"
    assert describe_path("local:a") == "a on node-local storage"
    assert describe_path("/elsewhere/a") == "/elsewhere/a"


def test_counts_and_ordinals():
    """One of a thing has no s; ordinals are words up to the tenth."""
    assert [plural(1, "trial"), plural(2, "trial"), plural(0, "byte")] == ["1 trial", "2 trials", "0 bytes"]
    assert [ordinal(n) for n in (1, 10, 11, 12, 21, 22, 23, 112)] == [
        *("first", "tenth", "11th", "12th", "21st", "22nd", "23rd", "112th")
    ]


addresses = st.builds(
    Address,
    st.integers(0, 999),
    st.sampled_from(get_args(Role)),
    st.sampled_from(sorted(NAMES)),
    st.text() | st.sampled_from(["shared:.", "local:", "step:3", "stage:", "stage:mark in commit of save 2", ":"]),
    st.integers(0, 99),
    st.integers(0, 999),
)
labels = st.text() | st.builds(
    lambda stage, step: str(Label(stage, step)), st.sampled_from(get_args(Stage)), st.integers(0)
)


@given(addresses, labels, st.sampled_from(get_args(When)), st.integers(0))
def test_whatever_the_address_the_rank_is_told(address, label, when, torn_bytes):
    """Neither phrase raises or is empty, and both name the rank."""
    operation, trigger = describe_operation(address, label), describe_trigger(Trigger(address, when, torn_bytes), label)
    assert f"rank {address.rank}" in operation
    assert f"rank {address.rank}" in trigger
    assert trigger.split()[0] in ("before", "after")
