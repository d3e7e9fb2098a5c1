"""C32: load into a template of a narrower type casts the values down, without a word."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from two_ranks import told

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "step-1"
        dcp.save({"weights": torch.full((4,), 1.001)}, checkpoint_id=directory, no_dist=True)
        loaded = {"weights": torch.zeros(4, dtype=torch.bfloat16)}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            dcp.load(loaded, checkpoint_id=directory, no_dist=True)
    about = [str(warning.message) for warning in warned if "dtype" in str(warning.message)]
    value = loaded["weights"][0].item()
    told(
        "load refuses, or warns, when float32 is to be loaded into bfloat16",
        f"1.001 became {value}; warnings about it: {about}",
        value != 1.001 and not about,
    )
