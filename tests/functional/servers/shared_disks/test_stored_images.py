"""Root disks are made from images where the image service keeps them, if hosts reach that; else the images are downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.virt.simulated.disk import EXPORTED, Disk, Header
from tests.functional.servers.shared_disks.shared_cloud import OPTIONS, SharedCloud

KIND = SharedCloud
CLOUD: dict[str, Any] = {"cells": 1, "hosts_per_cell": 2, "overrides": OPTIONS}
RAW = Disk(Header(), ["of the image"]).encode()


@pytest.fixture
def kept(cloud: SharedCloud) -> Iterator[Path]:
    """The image service keeps its images in the hosts' store: there they are in this folder."""
    folder = cloud.store.folder / "images"
    folder.symlink_to(cloud.embedded.state.devcloud / "images")
    yield folder
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def image(cloud: SharedCloud, data: bytes = RAW, disk_format: str = "raw", **more: Any) -> Any:
    return cloud.member.image.create_image(
        name="kept", disk_format=disk_format, container_format="bare", data=data, allow_duplicates=True, **more
    )


def downloaded(cloud: SharedCloud, made: Any) -> list[str]:
    """The hosts that have the image's file."""
    return [host for host in cloud.embedded.computes if (cloud.embedded.state.host(host) / "_base" / made.id).exists()]


def booted(cloud: SharedCloud, made: Any) -> Any:
    server = cloud.boot(image_id=made.id)
    assert cloud.read(server)[0] == "of the image"
    cloud.check_clean(server)
    return server


def test_a_disk_is_made_from_an_image_that_no_host_has_downloaded(cloud: SharedCloud, kept: Path) -> None:  # noqa: ARG001
    made = image(cloud)
    server = booted(cloud, made)
    cloud.write(server, "its own")
    cloud.member.compute.rebuild_server(server, image=made.id)
    cloud.wait(server, "ACTIVE")
    assert "its own" not in cloud.read(server) and cloud.read(server)[0] == "of the image"
    assert downloaded(cloud, made) == []


def test_an_image_in_other_storage_is_downloaded(cloud: SharedCloud, kept: Path) -> None:
    kept.unlink()
    kept.mkdir()
    made = image(cloud)
    shutil.copy(cloud.embedded.state.devcloud / "images" / made.id, kept)
    server = booted(cloud, made)
    assert downloaded(cloud, made) == [cloud.host_of(server)]


@pytest.mark.parametrize("status", [403, 404, 503])
def test_an_image_is_downloaded_if_the_image_service_does_not_say_where_it_is(
    cloud: SharedCloud,
    kept: Path,  # noqa: ARG001
    status: int,
) -> None:
    made = image(cloud)
    cloud.fail("status", "/locations", service="image", status=status)
    server = booted(cloud, made)
    assert downloaded(cloud, made) == [cloud.host_of(server)]


def test_an_image_of_another_format_is_downloaded(cloud: SharedCloud, kept: Path) -> None:  # noqa: ARG001
    made = image(cloud, EXPORTED + RAW, "qcow2")
    server = booted(cloud, made)
    assert downloaded(cloud, made) == [cloud.host_of(server)]


@pytest.mark.parametrize(
    ("data", "said"),
    [(EXPORTED + RAW, "it is said to be raw, and its content is"), (RAW, "Use a larger")],
    ids=["qcow2 bytes that are said to be raw", "larger than the flavor's disk"],
)
def test_an_image_that_is_refused_when_it_is_downloaded_is_refused_where_it_is_kept(
    cloud: SharedCloud,
    kept: Path,  # noqa: ARG001
    data: bytes,
    said: str,
) -> None:
    made = image(cloud, data)
    if data == RAW:
        # Larger than its record says.
        with (cloud.embedded.state.devcloud / "images" / made.id).open("r+b") as file:
            file.truncate((1 << 30) + 1)
    server = cloud.member.compute.create_server(
        name="refused",
        flavor_id=cloud.flavor("shared.small", disk=1),
        image_id=made.id,
        networks=[{"uuid": cloud.network_id}],
    )
    with pytest.raises(AssertionError, match=said):
        cloud.wait(server, "ACTIVE")
    assert cloud.names(server) == []
