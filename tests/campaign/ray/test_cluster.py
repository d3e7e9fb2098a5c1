from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from chaosckpt.campaign.ray import cluster
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


JOINING = """
import sys
from chaosckpt.campaign.ray import cluster
from chaosckpt.errors import UsageError
cluster.JOIN_SECONDS = 2
try:
    with cluster.connect(sys.argv[1], cpus=1):
        print("connected")
except UsageError as error:
    print(error)
"""


def test_a_head_that_never_answers_is_given_up() -> None:
    """Goal: something listens there and says nothing. Ray itself would go on trying for many minutes; the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = subprocess.run([sys.executable, "-c", JOINING, address], capture_output=True, text=True, check=True)
    assert f"{address} did not let this process join within 2 s" in done.stdout


def test_what_fails_within_the_deadline_fails_as_it_did() -> None:
    """Goal: the deadline changes no error."""
    with pytest.raises(ZeroDivisionError):
        cluster._within(5, lambda: 1 // 0)
