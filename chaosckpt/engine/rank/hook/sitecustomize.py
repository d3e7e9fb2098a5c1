"""What every interpreter of a cold command runs first: at its end it tells which modules it had imported, and torch is observed.

A folder on PYTHONPATH rather than a package: Python imports `sitecustomize` by itself. Nothing of it is seen by the script: the folder
is off sys.path again before the script begins, and the user's own sitecustomize runs as ever.
"""

import atexit
import contextlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def _report(directory: str) -> None:
    with contextlib.suppress(OSError), open(f"{directory}/{os.getpid()}.modules", "w", encoding="utf-8") as file:
        file.write("\n".join(sys.modules))


class _OnceTorchIsThere(MetaPathFinder):
    """Has torch observed as soon as the script has imported it, whenever that is."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._observe()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _observe(self) -> None:
        with contextlib.suppress(Exception):  # another Python than chaosckpt's has no observer
            from chaosckpt.observers.torch import install

            install(f"{self._directory}/{os.getpid()}.steps")
        for name in [name for name in sys.modules if name.partition(".")[0] == "chaosckpt"]:
            del sys.modules[name]


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if directory := os.environ.get("CHAOSCKPT_HOOK"):
        atexit.register(_report, directory)
    if directory := os.environ.get("CHAOSCKPT_OBSERVE"):
        sys.meta_path.insert(0, _OnceTorchIsThere(directory))
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's own, or the distribution's
    except ImportError:
        sys.modules["sitecustomize"] = own


_begin()
