"""The program that is an unmodified command: in a fork of a warm interpreter, or as a program of its own.

Standard library and the harness's own wire only: whatever a script imports is the script's choice.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import hashlib
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
import threading
from collections.abc import Sequence
from importlib.abc import InspectLoader
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from chaosckpt.commands.launches import OBSERVER, PORT, script_of
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.gate.install import pass_gate
from chaosckpt.model.observed import SUFFIX


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
        self.argv = program.argv
        self.environment = node.environment
        self.directory = node.directory
        self.rank = order.place.rank
        self.attempt = order.attempt.attempt
        if program.launch is not None:
            launched = program.launch.ranks[order.place.rank]
            self.argv, self.directory = launched.argv, launched.directory
            self.environment = launched.environment | {PORT: str(program.port)}

    def run(self) -> None:
        """Become the command by exec, or run its script as `__main__` here, where this interpreter is warm."""
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
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
        argv = self.argv
        try:
            os.execvpe(argv[0], list(argv), self.environment)  # noqa: S606 - it is what the user asked for
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127)

    def run_script(self, cold_path: Sequence[str]) -> None:
        """Run the script in this warm interpreter; raises SystemExit with its exit code, once its own code has ended.

        `cold_path` is what a cold interpreter has in sys.path behind the script's own directory.
        """
        argv = self.argv
        script = script_of(argv)
        assert script is not None
        observer = sys.modules.get(OBSERVER)
        _look_cold(script[0], cold_path, is_module=script[1], unbuffered="-u" in argv[1:2])
        _seed(self.rank, self.attempt)
        if observer is not None and self.node.observed:
            observer.install(f"{self.node.observed}/{os.getpid()}{SUFFIX}")
        sys.argv = [script[0], *script[2]]
        code = _run(script[0], is_module=script[1])
        if self.program.short_end:
            _end(code)
        raise SystemExit(code)


def _end(code: int) -> NoReturn:
    """End this process with what a script has registered for its end, but without tearing its modules down.

    That takes most of the time of a short run once torch is among them, and does nothing that is seen from outside, unless some
    object writes when it is collected.
    """
    for end in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(Exception):
            end()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed by the script, or its reader has gone
            stream.flush()
    os._exit(code & 0xFF)


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


def _seed(rank: int, attempt: int) -> None:
    """Seed the global generators that a script may use without seeding them: anew for each rank and attempt, and always the same.

    In cold interpreters they differ from run to run, as the two cold golden runs show; forks of one interpreter would all draw the
    same.
    """
    seed = int.from_bytes(hashlib.blake2b(f"chaosckpt/{rank}/{attempt}".encode(), digest_size=4).digest())
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(seed)


def _look_cold(script: str, cold_path: Sequence[str], *, is_module: bool, unbuffered: bool) -> None:
    """Take away what a cold interpreter would not show."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "chaosckpt"]:
        del sys.modules[name]
    tempfile.tempdir = None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it is the process's standard input to its end
    # What was said before a kill has to be there after it: unbuffered is the file below, too.
    at_once = unbuffered or bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout = io.TextIOWrapper(open(1, "wb", 0 if at_once else -1, closefd=False), write_through=at_once)  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0, closefd=False), errors="backslashreplace", write_through=True)  # noqa: SIM115
    first = os.getcwd() if is_module else os.path.dirname(os.path.realpath(script))
    sys.path[:] = [first, *cold_path]
