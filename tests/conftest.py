"""What every test stands on: long files first, so that all workers end together, and Ctrl-C as a terminal would give it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import structlog

LONGEST_FIRST = """
drill/test_drill.py campaign/test_fuzz.py engine/test_faults_land.py campaign/ray/test_driver.py targets/test_dcp_fsspec.py
campaign/test_fuzz_command.py measure/test_measuring.py engine/test_launch.py cli/test_measure_ending.py power/test_canaries.py
campaign/test_fuzz_probed.py drill/test_real_storage.py campaign/test_finding_scripts.py engine/golden/test_recovery.py
cases/test_cases.py test_benchmarks.py campaign/shrink/test_shrinking.py engine/test_cuts.py campaign/ray/test_arenas.py
campaign/test_fuzz_command_options.py engine/test_command_trees.py scripts/test_frameworks.py targets/test_every_target.py
engine/runner/test_reference.py cli/test_drill.py campaign/test_composition.py gate/test_trace.py
""".split()
"""The files that take longest, by their CPU time. All others follow, in the order in which they are found."""


def pytest_configure(config: pytest.Config) -> None:
    """With `--dist loadfile` the workers take files in the order of the collection, not those with the most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with what takes longest: begun last, one such file would keep one worker busy while the others have ended."""
    rank = {path: number for number, path in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0].removeprefix("tests/"), len(rank)))


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> Iterator[None]:
    """A shell ignores SIGINT for what it starts in the background, and so would every process that a test interrupts."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """A command line run within a test sends logs to that test's standard error, which is closed when it ends."""
    yield
    structlog.reset_defaults()
