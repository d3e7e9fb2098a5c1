"""A real S3 server for tests: moto's in a process of its own, with or without a front that dies at an exact request."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

BUCKET = "checkpoints"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Server:
    """One server process; `port` stays known when it is gone."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("s3_server.py")), "--port", str(port), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def awaited(self) -> int:
        """How it ended, once it has."""
        return self._process.wait(timeout=60)

    def kill(self) -> None:
        """It is gone, with all that it held in memory."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextlib.contextmanager
def serving(*arguments: str, port: int = 0) -> Iterator[Server]:
    """A server that has ended when the block has."""
    server = Server(*arguments, port=port)
    try:
        yield server
    finally:
        server.kill()


def client(server: Server) -> Any:
    """A plain client that starts no thread, since ranks are forked from the test's process."""
    return boto3.client(
        "s3",
        endpoint_url=server.url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}),
    )


def names(server: Server) -> list[str]:
    """The key of every object in the bucket, without the job's own prefix."""
    found = client(server).list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return sorted("/".join(one["Key"].split("/")[2:]) for one in found)


def key(server: Server, ending: str) -> str:
    """The key of the one object that ends so."""
    found = client(server).list_objects_v2(Bucket=BUCKET)["Contents"]
    (one,) = [entry["Key"] for entry in found if entry["Key"].endswith(ending)]
    return str(one)
