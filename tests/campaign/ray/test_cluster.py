from __future__ import annotations

import pytest

from chaosckpt.campaign.ray.cluster import connect
from chaosckpt.errors import UsageError


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("head", "lacks a port; give it as HOST:PORT, such as head:6379"),
        ("ray://head:10001", "give it as HOST:PORT"),
        ("127.0.0.1:1", "nothing answers at --address 127.0.0.1:1"),
        ("127.0.0.1:99999", "nothing answers at --address 127.0.0.1:99999"),
    ],
)
def test_an_address_without_a_cluster_is_one_sentence(address: str, sentence: str) -> None:
    """What can't be a cluster's head is refused at once, with the address and the next step."""
    with pytest.raises(UsageError, match=sentence), connect(address, cpus=1):
        pytest.fail("connected")
