"""Tests with the real writers of checkpoints: traced, replayed, killed inside, and read back under the gate."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from chaosckpt.gate import Root
from chaosckpt.gate.replay import replay
from chaosckpt.model.fault import Decision, Hold
from chaosckpt.model.operation import Operation
from tests.gate.driver import Supervised, launch, run, serve, snapshot


def state() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {f"layer{number}": torch.randn(64, 64 * (number + 1), generator=generator) for number in range(6)}


def save_path(store: Path) -> None:
    torch.save(state(), store / "model.pt")


def save_legacy(store: Path) -> None:
    torch.save(state(), store / "model.pt", _use_new_zipfile_serialization=False)


def save_atomically(store: Path) -> None:
    with open(store / "model.pt.tmp", "wb") as file:
        torch.save(state(), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(store / "model.pt.tmp", store / "model.pt")


def save_dcp(store: Path) -> None:
    dcp_save(state(), checkpoint_id=store / "step", no_dist=True)


def save_dcp_with_threads(store: Path) -> None:
    writer = FileSystemWriter(store / "step", single_file_per_rank=False, thread_count=4)
    dcp_save(state(), storage_writer=writer, no_dist=True)


def save_safetensors(store: Path) -> None:
    save_file(state(), store / "model.safetensors")


WRITERS: list[Callable[[Path], None]] = [
    save_path,
    save_legacy,
    save_atomically,
    save_dcp,
    save_dcp_with_threads,
    save_safetensors,
]


def load_dcp(store: Path) -> dict[str, torch.Tensor]:
    found = {name: torch.zeros_like(tensor) for name, tensor in state().items()}
    dcp_load(found, checkpoint_id=store / "step", no_dist=True)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "again").mkdir()
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def saved(store: Path, save: Callable[[Path], None], **options: object) -> Supervised:
    return run(lambda: save(store), roots=[Root("t", str(store))], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("save", WRITERS)
def test_the_replay_of_a_save_is_the_disk(store: Path, save: Callable[[Path], None]) -> None:
    """Saved twice over the same names: the trace with data makes the same directory, byte for byte."""

    def twice() -> None:
        save(store)
        save(store)

    tree = run(twice, roots=[Root("t", str(store))])
    assert tree.status == 0
    assert tree.gate.untraced == []
    replay(tree.observed, {"t": store.parent / "again"})
    assert snapshot(store.parent / "again") == snapshot(store)
    addresses = [it.address for it in tree.decided]
    assert len(set(addresses)) == len(addresses)


def test_four_writer_threads_have_the_same_addresses_each_time(store: Path) -> None:
    """The threads' order varies from run to run, the addresses do not."""
    first, second = (
        {
            it.address
            for it in saved(store, save_dcp_with_threads).decided
            if it.address.op in ("write", "open_write", "fsync")
        }
        for _ in range(2)
    )
    assert {it.role for it in first} == {"main", "thread"}
    assert {(it.op, it.path, it.nth) for it in first} == {(it.op, it.path, it.nth) for it in second}


@pytest.mark.parametrize("save", WRITERS)
@pytest.mark.parametrize("fraction", [0.0, 0.7])
def test_a_kill_leaves_what_the_trace_says(store: Path, save: Callable[[Path], None], fraction: float) -> None:
    """Killed before, inside or after one of its writes: the disk is the replay of what was observed."""
    writes = [it.address for it in saved(store, save).decided if it.address.op == "write"]
    chosen = writes[int(len(writes) * fraction)]
    for hold in (Hold("before"), Hold("torn", 17), Hold("after")):
        with tempfile.TemporaryDirectory(dir=store.parent) as folder:
            disk, again = Path(folder, "disk"), Path(folder, "again")
            disk.mkdir()
            again.mkdir()

            def decide(it: Operation, hold: Hold = hold) -> Decision:
                same = (it.address.op, it.address.path, it.address.nth) == (chosen.op, chosen.path, chosen.nth)
                return hold if same else None

            tree = saved(disk, save, decide=decide)
            if tree.status == 0:
                assert save is save_safetensors  # Its temporary name is new each time.
                continue
            assert tree.status == signal.SIGKILL
            replay(tree.observed, {"t": again})
            assert snapshot(again) == snapshot(disk)


@pytest.mark.parametrize(
    ("save", "load"),
    [
        (save_path, lambda store: torch.load(store / "model.pt", weights_only=True)),
        (save_dcp, load_dcp),
        (save_dcp_with_threads, load_dcp),
        (save_safetensors, lambda store: load_file(store / "model.safetensors")),
    ],
)
def test_a_load_is_seen(
    store: Path, save: Callable[[Path], None], load: Callable[[Path], dict[str, torch.Tensor]]
) -> None:
    """Discovery and reads are operations, and what is loaded is what was saved."""
    save(store)

    def program() -> None:
        newest = max(os.listdir(store))
        assert os.path.exists(store / newest)
        found = load(store)
        assert all(torch.equal(found[name], tensor) for name, tensor in state().items())

    tree = run(program, roots=[Root("t", str(store))])
    assert tree.status == 0
    assert tree.named("open_read")
    assert tree.named("read") or save is save_safetensors  # It maps its file: seen at the open.
    assert tree.ops[:2] == ["open_read t:.", "list t:."]
    assert tree.named("stat")


def test_two_ranks_in_one_loop(store: Path) -> None:
    """A two-rank gloo job under two gates of one loop: the merged trace replays to the shared directory."""
    merged: list[Operation] = []
    rendezvous = store.parent / "rendezvous"

    def rank(number: int) -> None:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=number, world_size=2)
        mine = {f"rank{number}": torch.full((100,), float(number)), "both": torch.ones(10)}
        dcp_save(mine, checkpoint_id=store / "step")
        found = {name: torch.zeros_like(tensor) for name, tensor in mine.items()}
        dcp_load(found, checkpoint_id=store / "step")
        assert all(torch.equal(found[name], mine[name]) for name in mine)
        os._exit(0)

    trees = [
        launch(partial(rank, number), roots=[Root("t", str(store))], rank=number, after=merged.append)
        for number in range(2)
    ]
    serve(*trees)
    assert [tree.status for tree in trees] == [0, 0]
    replay(merged, {"t": store.parent / "again"})
    assert snapshot(store.parent / "again") == snapshot(store)
    assert {it.address.rank for it in merged if it.address.op == "write"} == {0, 1}
