"""How errors leave the command line."""

from __future__ import annotations

import errno
import signal

import click
import pytest

from chaosckpt.cli import failure
from chaosckpt.errors import HarnessError, PluginError, UsageError, of_this_machine


@pytest.fixture
def raising(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(failure, "_run_directory", None)

    def call(error: BaseException | None, *arguments: str) -> tuple[int, str]:
        @click.group()
        @click.option("--debug", is_flag=True)
        def group(debug: bool) -> None:
            pass

        @group.command()
        def go() -> None:
            if error is not None:
                raise error

        with pytest.raises(SystemExit) as ended:
            failure.guarded(group, [*arguments, "go"])
        return int(ended.value.code or 0), capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("error", "code"), [(UsageError("a sentence"), 2), (PluginError("a sentence"), 2), (HarnessError("a sentence"), 3)]
)
def test_expected_errors_are_one_sentence(raising, error, code):
    """An expected error is its sentence and its exit code, without a traceback."""
    assert raising(error) == (code, "chaosckpt: a sentence\n")


def test_a_bug_of_ours_says_so_and_keeps_the_traceback(raising, tmp_path):
    """Anything else is reported as a bug in chaosckpt, exit code 3, with the traceback in a file."""
    code, printed = raising(ZeroDivisionError("by zero"))
    assert code == 3
    assert "this is a bug in chaosckpt" in printed
    assert "ZeroDivisionError: by zero" in printed
    assert "Traceback" not in printed
    (log,) = tmp_path.glob("chaosckpt-fault-*.log")
    assert str(log) in printed
    assert "Traceback" in log.read_text()


def test_a_bug_is_kept_with_its_run(raising, tmp_path):
    """Once there is a run directory, the traceback goes there."""
    run = tmp_path / "run"
    run.mkdir()
    failure.report_into(run)
    raising(ZeroDivisionError("by zero"))
    assert len(list(run.glob("*.log"))) == 1


def test_debug_shows_the_traceback(raising, tmp_path):
    """With --debug the traceback is printed, and no file is written."""
    code, printed = raising(ZeroDivisionError("by zero"), "--debug")
    assert code == 3
    assert "Traceback" in printed
    assert list(tmp_path.glob("*.log")) == []


def test_an_interrupt_is_one_word(raising):
    """Ctrl-C is exit code 130."""
    assert raising(KeyboardInterrupt()) == (130, "\ninterrupted\n")


def test_no_error_is_exit_code_0(raising):
    """A command that returns is a success."""
    assert raising(None) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_interrupt(number):
    """SIGTERM and SIGHUP are handled like Ctrl-C, and the previous handlers are restored."""
    before = signal.getsignal(number)

    @click.group()
    def group() -> None:
        pass

    @group.command()
    def go() -> None:
        signal.raise_signal(number)

    with pytest.raises(SystemExit) as ended:
        failure.guarded(group, ["go"])
    assert ended.value.code == 130
    assert signal.getsignal(number) == before


def test_a_full_disk_is_no_bug_of_ours(raising, tmp_path):
    """What the machine lacks is one sentence with the next step, and no traceback is written for it."""
    code, printed = raising(OSError(errno.ENOSPC, "No space left on device", "/x"))
    assert code == 3
    assert printed == "chaosckpt: No space left on device: /x; free some space there, then try again\n"
    assert list(tmp_path.glob("*.log")) == []


def test_a_full_disk_names_the_place_where_a_write_does_not():
    """The error of a write has no file name: the run directory stands for it, but not where another limit was met."""
    full = OSError(errno.ENOSPC, "No space left on device")
    assert of_this_machine(full, place="/run") == "No space left on device: /run; free some space there, then try again"
    many = of_this_machine(OSError(errno.EMFILE, "Too many open files"), place="/run")
    assert many is not None
    assert "/run" not in many


def test_a_full_disk_names_the_run_to_continue(raising, tmp_path):
    """Once the run's options are stored, the next step is to continue that run."""
    failure.report_into(tmp_path)
    full = OSError(errno.ENOSPC, "No space left on device")
    assert raising(full)[1].endswith("then try again\n")
    (tmp_path / "options.json").write_text("{}")
    assert raising(full)[1].endswith(f"then continue with: chaosckpt fuzz --resume {tmp_path}\n")
