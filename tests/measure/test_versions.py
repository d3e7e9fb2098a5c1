"""The versions that go with a measurement."""

from __future__ import annotations

import platform
from importlib import metadata

import msgspec

from chaosckpt.measure.measuring import versions
from chaosckpt.targets.dcp import Dcp


def test_runtime_and_libraries():
    """Python, kernel, libc, torch and chaosckpt are named with the versions that are installed."""
    found = versions(Dcp)
    assert found["python"] == platform.python_version()
    assert found["kernel"] == platform.release()
    assert found["torch"] == metadata.version("torch")
    assert found["chaosckpt"] == metadata.version("chaosckpt")
    assert "unknown" not in found.values()


def test_the_targets_own_library():
    """The distribution that a target's class comes from is named, for a class and for an object of it alike."""

    class Outside(msgspec.Struct):
        pass

    assert versions(Outside)["msgspec"] == metadata.version("msgspec")
    assert versions(Outside()) == versions(Outside)


def test_a_target_from_a_file():
    """A class of a module that no distribution owns adds nothing."""
    own = type("Own", (), {"__module__": "nowhere_installed"})
    assert "nowhere_installed" not in versions(own)
