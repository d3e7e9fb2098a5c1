"""The program that is an unmodified command: in a fork of a warm interpreter, or as a program of its own.

Standard library and the harness's own wire only: whatever a script imports is the script's choice.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import random
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import InspectLoader
from types import CodeType, ModuleType, TracebackType

from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.gate.install import pass_gate

FLAGS_THAT_FIT = frozenset({"-u"})
"""Options of the interpreter that a warm one can have, too: its output is never kept back."""


def script_of(argv: Sequence[str]) -> tuple[str, bool, tuple[str, ...]] | None:
    """(file or module, whether it is a module, its arguments) of `python [-u] SCRIPT ...`; None for any other command."""
    words = list(argv[1:])
    while words and words[0] in FLAGS_THAT_FIT:
        words.pop(0)
    if len(words) > 1 and words[0] == "-m":
        return words[1], True, tuple(words[2:])
    if words and not words[0].startswith("-"):
        return words[0], False, tuple(words[1:])
    return None


class Command:
    """Stand where the command is to run, under the gate, and become it."""

    def __init__(
        self, order: RankOrder, connection: socket.socket, program: CommandProgram, cold_path: Sequence[str] | None
    ) -> None:
        node = order.settings.command
        assert node is not None
        self.node = node
        self.connection = connection
        self.program = program
        self.cold_path = cold_path

    def run(self) -> None:
        """Become the command by exec, or run its script as `__main__` here, where this interpreter is warm."""
        os.environ.clear()
        os.environ.update(self.node.environment)
        os.chdir(self.node.directory)
        # The gate is asked about connections where they aren't allowed.
        pass_gate(self.connection, low_descriptors=True, network=not self.node.network)
        # A program may close every descriptor from 3 on, and use their numbers: nothing of the harness's is to be among them.
        self.connection.close()
        if self.cold_path is None:
            self.execute()
        else:
            self.run_script(self.cold_path)

    def execute(self) -> None:
        """Become the command. Exits like a shell where there is no such command, saying so on standard error."""
        argv = self.program.argv
        try:
            os.execvpe(argv[0], list(argv), self.node.environment)  # noqa: S606 - it is what the user asked for
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127)

    def run_script(self, cold_path: Sequence[str]) -> None:
        """Run the script in this warm interpreter; raises SystemExit with its exit code, once its own code has ended.

        `cold_path` is what a cold interpreter has in sys.path behind the script's own directory.
        """
        argv = self.program.argv
        script = script_of(argv)
        assert script is not None
        _look_cold(script[0], cold_path, is_module=script[1], unbuffered="-u" in argv[1:2])
        sys.argv = [script[0], *script[2]]
        try:
            code = _run(script[0], is_module=script[1])
        finally:
            if self.program.modules_file:
                with contextlib.suppress(OSError), open(self.program.modules_file, "w", encoding="utf-8") as file:
                    file.write("\n".join(sys.modules))
        raise SystemExit(code)


def _run(script: str, *, is_module: bool) -> int:
    try:
        found = _module(script) if is_module else _file(script)
        if found is not None:
            _be_main(*found)
        elif is_module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException as error:  # an unguarded script prints whatever ends it, and so does this
        own = _own_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _file(script: str) -> tuple[CodeType, dict[str, object]] | None:
    """The code of a script and the names that its module begins with; None for what is no source, such as a directory."""
    path = script if os.path.isabs(script) else os.path.join(os.getcwd(), script.removeprefix("./"))
    if os.path.isdir(path) or not path.endswith(".py"):
        return None
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError:
        return None
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    names: dict[str, object] = {
        "__file__": path,
        "__cached__": None,
        "__package__": None,
        "__loader__": loader,
        "__spec__": None,
    }
    return compile(source, path, "exec", dont_inherit=True), names


def _module(name: str) -> tuple[CodeType, dict[str, object]] | None:
    """The same for `python -m NAME`, a package's `__main__` included; None where runpy is to say what is wrong with it."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(name + ".__main__")
    except (ImportError, ValueError):
        return None
    loader = spec.loader if spec is not None else None
    code = loader.get_code(spec.name) if spec is not None and isinstance(loader, InspectLoader) else None
    if spec is None or code is None:
        return None
    sys.argv[0] = spec.origin or name
    return code, {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__package__": spec.parent,
        "__loader__": spec.loader,
        "__spec__": spec,
    }


def _be_main(code: CodeType, names: dict[str, object]) -> None:
    """Run the code as `__main__`, which it stays: behind its last line threads and exit functions still pickle what it defines."""
    main = ModuleType("__main__")
    main.__dict__.update(names, __builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102 - it is the user's script


def _own_frames(found: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that a cold interpreter would not have."""
    while found is not None and found.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        found = found.tb_next
    return found


def _look_cold(script: str, cold_path: Sequence[str], *, is_module: bool, unbuffered: bool) -> None:
    """Take away what a cold interpreter would not show."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "chaosckpt"]:
        del sys.modules[name]
    tempfile.tempdir = None
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it is the process's standard input to its end
    # What was said before a kill has to be there after it: unbuffered is the file below, too.
    at_once = unbuffered or bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout = io.TextIOWrapper(open(1, "wb", 0 if at_once else -1, closefd=False), write_through=at_once)  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0, closefd=False), errors="backslashreplace", write_through=True)  # noqa: SIM115
    first = os.getcwd() if is_module else os.path.dirname(os.path.realpath(script))
    sys.path[:] = [first, *cold_path]
