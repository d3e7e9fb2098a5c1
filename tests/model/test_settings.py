"""The workload's settings refuse what can't be, in one sentence with the value."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.scenario import WorkloadSettings


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("steps", 0),
        ("save_every", 0),
        ("hidden", -1),
        ("layers", 0),
        ("batch", 0),
        ("batch", 65),
        ("dataset", 0),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("learning_rate", 0.0),
        ("seed", -1),
    ],
)
def test_an_impossible_setting_is_named_with_its_value(setting, value):
    """The sentence holds the key as a scenario spells it, and the offending value."""
    with pytest.raises(ValueError, match=rf"workload\.{setting} is {value}"):
        WorkloadSettings(**{setting: value})


def test_unknown_keys_are_refused():
    """A misspelt key in a scenario is an error and not a default."""
    with pytest.raises(msgspec.ValidationError, match="hiden"):
        msgspec.convert({"hiden": 3}, WorkloadSettings)
