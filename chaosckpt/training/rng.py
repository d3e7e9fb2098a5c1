"""The random streams of one rank (torch, Python, numpy): seeding, capture and restoration."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping

import numpy
import torch
from torch import Tensor


class RandomStreams:
    """This process's three random streams. The streams themselves are the libraries' own globals, as in a real job."""

    def seed(self, seed: int, rank: int, step: int) -> None:
        """Start all three streams afresh, as a pure function of the arguments: distinct for each rank and step."""
        digest = hashlib.blake2b(f"{seed}/{rank}/{step}".encode(), digest_size=20).digest()
        # Only the CPU's stream: torch.manual_seed seeds every accelerator's as well, and formats the stack for each of them.
        torch.default_generator.manual_seed(int.from_bytes(digest[:8], "big"))
        random.seed(int.from_bytes(digest[8:16], "big"))
        numpy.random.seed(int.from_bytes(digest[16:], "big"))

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the streams' states: torch uint8 [5056], python int64 [628], numpy int64 [627]."""
        version, words, gauss = random.getstate()
        legacy = numpy.random.get_state(legacy=False)
        keys, position = legacy["state"]["key"], legacy["state"]["pos"]
        python = [version, *words, gauss is not None, _bits(gauss or 0.0)]
        tail = torch.tensor([position, legacy["has_gauss"], _bits(legacy["gauss"])], dtype=torch.int64)
        return {
            "torch": torch.get_rng_state(),
            "python": torch.tensor(python, dtype=torch.int64),
            "numpy": torch.cat([torch.from_numpy(numpy.asarray(keys).astype(numpy.int64)), tail]),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` captured. Raises KeyError for a missing stream, ValueError for a malformed one."""
        torch.set_rng_state(state["torch"])
        version, *words, has_gauss, gauss = state["python"].tolist()
        random.setstate((version, tuple(words), _float(gauss) if has_gauss else None))
        *keys, position, has_cached, cached = state["numpy"].tolist()
        numpy.random.set_state(("MT19937", numpy.array(keys, dtype=numpy.uint32), position, has_cached, _float(cached)))


def _bits(value: float) -> int:
    """The float's bytes as an int64, so that a stream's state fits one integer tensor exactly."""
    return int(numpy.float64(value).view(numpy.int64))


def _float(bits: int) -> float:
    return float(numpy.int64(bits).view(numpy.float64))
