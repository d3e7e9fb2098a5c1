"""Drills on real storage: a small ext4 file system, mounted where the machine lets one be, and an S3 server on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drill.test_drill import TWO_SAVES, carried_out, scenario_of
from tests.targets.s3 import BUCKET, ENVIRONMENT, client, names, serving

pytestmark = pytest.mark.timeout(900)
MEGABYTES = 64


def done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def ext4(tmp_path) -> Iterator[Path]:
    """The mount point of a new ext4 on a loop device; it is unmounted afterwards, whatever happens. Skipped, with the reason, where it
    can't be made or mounted."""
    maker = shutil.which("mkfs.ext4") or shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if maker is None:
        pytest.skip("there is no mkfs.ext4")
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    image, place = tmp_path / "image", tmp_path / "mounted"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(MEGABYTES << 20)
    made = done(maker, "-q", "-F", str(image))
    if made.returncode:
        pytest.skip(f"mkfs.ext4 failed: {made.stderr.strip()}")
    # `loop` takes a free loop device, and gives it back when the file system is unmounted.
    mounted = done("mount", "-t", "ext4", "-o", "loop,noatime", str(image), str(place))
    if mounted.returncode:
        pytest.skip(f"ext4 can't be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        unmounted = done("umount", str(place))
        if unmounted.returncode:  # whoever still holds it open must not keep it mounted
            done("umount", "--lazy", str(place))
        assert unmounted.returncode == 0, unmounted.stderr
        assert not place.is_mount()


def test_a_drill_on_ext4_survives_and_names_the_file_system(ext4):
    """The certificate has the kind, the device and the mount options of the storage that was really used; nothing is left on it."""
    certificate = carried_out(
        scenario_of(
            "dcp", workload=TWO_SAVES, storage={"shared": str(ext4), "local": str(ext4)}, drill={"interruptions": 1}
        )
    )
    assert certificate.exit_code == 0, [step.sentence for step in certificate.steps if not step.held]
    for system in certificate.file_systems:
        assert system.kind == "ext4"
        assert "noatime" in system.mount_options
        assert "loop" in system.device
        assert system.mount_point == str(ext4)
        assert system.documented
    assert [path.name for path in ext4.iterdir()] == ["lost+found"]


def test_a_drill_on_an_object_store_survives_at_stage_boundaries(monkeypatch, tmp_path):
    """The gate sees nothing of S3: the certificate says that kills were at stage boundaries. New ranks get only what is named."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    target = Path(__file__).parents[2] / "chaosckpt" / "targets" / "dcp_fsspec.py"
    with serving() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        client(server).create_bucket(Bucket=BUCKET)
        certificate = carried_out(
            scenario_of(
                f"{target}:DcpFsspec",
                workload=TWO_SAVES,
                target={"use": f"{target}:DcpFsspec", "options": {"url": f"s3://{BUCKET}/drills"}},
                drill={"interruptions": 1, "environment": [*sorted(ENVIRONMENT), "AWS_ENDPOINT_URL"]},
            )
        )
        assert any(name.endswith(".commit") for name in names(server))
    assert certificate.exit_code == 0, [step.sentence for step in certificate.steps if not step.held]
    assert certificate.gate == "none"
    assert "at stage boundaries" in certificate.steps[4].sentence
    new = [process for process in certificate.processes if process.allocation == "restored"]
    assert all(set(ENVIRONMENT) < set(process.environment) for process in new)
    assert not any({"PATH", "HOME"} & set(process.environment) for process in new)
