"""What every interpreter of a cold command runs first: at its end it tells which modules it had imported.

A folder on PYTHONPATH rather than a package: Python imports `sitecustomize` by itself. Standard library only, and nothing of it is
seen by the script: the folder is off sys.path again before the script begins, and the user's own sitecustomize runs as ever.
"""

import atexit
import contextlib
import os
import sys


def _report(directory: str) -> None:
    with contextlib.suppress(OSError), open(f"{directory}/{os.getpid()}.modules", "w", encoding="utf-8") as file:
        file.write("\n".join(sys.modules))


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if directory := os.environ.get("CHAOSCKPT_HOOK"):
        atexit.register(_report, directory)
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's own, or the distribution's
    except ImportError:
        sys.modules["sitecustomize"] = own


_begin()
