"""Arenas shared by the engine's tests: a fork server takes seconds to warm up, a trial a fraction of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaosckpt.engine.runner.arena import Arena, node_settings
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.wire import storage
from tests.engine.case import Case, scenario_of


@pytest.fixture(scope="session")
def dcp() -> Iterator[Case]:
    """Two nodes with one rank each, saving through DCP; the world may change to one or to three ranks."""
    case = Case(scenario_of("dcp", ((1, 1), (1,), (2, 1))))
    yield case
    case.close()


@pytest.fixture(scope="session")
def two_tier() -> Iterator[Case]:
    """Two nodes with node-local storage that is drained to shared storage."""
    case = Case(scenario_of("two-tier"))
    yield case
    case.close()


@pytest.fixture(scope="session")
def dcp_async() -> Iterator[Case]:
    """A job whose saver works in a thread while it trains: two saves in four steps."""
    case = Case(scenario_of("dcp-async", workload={"steps": 4, "save_every": 2}))
    yield case
    case.close()


@pytest.fixture(scope="session")
def child_saver() -> Iterator[Case]:
    """A job whose ranks save in child processes."""
    case = Case(scenario_of(f"{Path(__file__).with_name('child_saver.py')}:ChildSaver"))
    yield case
    case.close()


@pytest.fixture(scope="session")
def two_node_processes(dcp: Case) -> Iterator[Case]:
    """The dcp job on two nodes, each with a process of its own as under Ray; its census is that of `dcp`."""
    directory = storage.make_below(None)
    nodes = []
    for number in range(2):
        logs = directory / f"logs-{number}"
        logs.mkdir()
        modules = dcp.arena.nodes[0].modules
        nodes.append(LocalNode(node_settings(dcp.scenario, logs, gate=True, modules=modules)))
    case = Case(dcp.scenario, Arena(nodes, directory, directory))
    yield case
    case.close()
