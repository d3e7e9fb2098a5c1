"""docs/reference/measurement.md says what the JSON of a measurement holds."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from chaosckpt.measure import comparison, measurement

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "measurement.md").read_text(encoding="utf-8")
STRUCTS: dict[str, type[msgspec.Struct]] = {
    "The eight figures": measurement.MeasurementDocument,
    "Measurement": measurement.Measurement,
    "RankFigures": measurement.RankFigures,
    "Restart": measurement.Restart,
    "Backlog": measurement.Backlog,
    "Capacity": measurement.Capacity,
    "Contention": measurement.Contention,
    "ScalePoint": measurement.ScalePoint,
    "StorageLatency": measurement.StorageLatency,
    "IntervalAdvice": measurement.IntervalAdvice,
    "FileSystem": measurement.FileSystem,
    "Comparison": comparison.Comparison,
}


@pytest.mark.parametrize("title", STRUCTS)
def test_every_key_stands_in_its_table(title):
    """The first column of each table names exactly the keys that the object has."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    keys = [key for row in rows for key in re.findall(r"`(\w+)`", row)]
    assert len(keys) == len(set(keys))
    assert set(keys) == {field.name for field in msgspec.structs.fields(STRUCTS[title])}
