"""The command group: help, version, and the sentence for misuse."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from chaosckpt.cli.main import group

COMMANDS = ("fuzz", "reproduce", "judge", "list", "doctor", "init")


def test_version(run):
    """--version prints the installed version."""
    assert version("chaosckpt") in run("--version").out


@pytest.mark.parametrize("command", COMMANDS)
def test_help(run, command):
    """Every command explains itself, and those with arguments show examples."""
    result = run(command, "--help")
    assert result.code == 0
    assert command in group.commands
    if command not in ("doctor", "init"):
        assert "Examples:" in result.out


def test_unknown_commands_are_usage(run):
    """A command that isn't there is exit code 2."""
    assert run("fuz").code == 2


def test_the_command_line_imports_neither_torch_nor_ray():
    """Help and refusals are answered at once: no heavy import in the way."""
    code = "import chaosckpt.cli.main, sys; print(sorted({'torch', 'ray', 'hypothesis'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_reader_that_goes_away_is_no_error():
    """`chaosckpt list scenarios | head -0` ends quietly: no traceback, no complaint at exit."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from chaosckpt.cli.main import main; main()", "list", "scenarios"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141
