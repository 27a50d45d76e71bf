"""Root disks are made from images where the image service keeps them, if hosts reach that; else the images are downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from causeway.compute.guests import made_images
from causeway.context import admin_context
from causeway.faults import injector
from causeway.virt.simulated.disk import EXPORTED, Disk, Header
from tests.functional.servers.moves_cloud import PATIENCE
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


def copied(cloud: SharedCloud, server: Any) -> Any:
    made = cloud.member.compute.create_server_image(server, "copy", wait=True, timeout=PATIENCE)
    cloud.settle()
    return cloud.admin.image.get_image(made.id)


def notes(cloud: SharedCloud) -> list[Path]:
    return [path for host in cloud.embedded.computes for path in cloud.embedded.state.host(host).glob("_made/*")]


def test_an_image_of_a_running_server_is_made_beside_its_own_and_not_uploaded(
    cloud: SharedCloud,
    kept: Path,  # noqa: ARG001
) -> None:
    server = booted(cloud, image(cloud))
    cloud.write(server, "its own")
    cloud.fail("status", "/file", method="PUT", service="image", status=403)
    made = copied(cloud, server)
    assert (made.status, made.disk_format, made.hash_value) == ("active", "raw", None)
    other = booted(cloud, made)
    assert "its own" in cloud.read(other)
    assert downloaded(cloud, made) == [] and notes(cloud) == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/locations"), ("POST", "/locations"), ("PATCH", "")], ids=["where", "accept", "raw"]
)
def test_an_image_of_a_server_is_uploaded_if_it_can_not_be_made_beside_its_own(
    cloud: SharedCloud,
    kept: Path,  # noqa: ARG001
    method: str,
    path: str,
) -> None:
    server = booted(cloud, image(cloud))
    cloud.write(server, "its own")
    cloud.fail("status", path, method=method, service="image", status=403)
    made = copied(cloud, server)
    assert (made.status, made.disk_format) == ("active", "qcow2") and made.hash_value
    assert "its own" in cloud.read(booted(cloud, made))
    assert notes(cloud) == []


def test_a_shelved_server_s_image_is_made_and_used_where_the_image_service_keeps_it(
    cloud: SharedCloud,
    kept: Path,  # noqa: ARG001
) -> None:
    server = booted(cloud, image(cloud))
    cloud.write(server, "its own")
    for method in ("PUT", "GET"):
        cloud.fail("status", "/file", method=method, service="image", status=403)
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    assert cloud.names(server) == []
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert cloud.read(server)[0] == "of the image" and "its own" in cloud.read(server)
    cloud.check_clean(server)


def test_a_shelved_server_s_image_is_downloaded_by_a_host_that_does_not_reach_it(
    cloud: SharedCloud, kept: Path
) -> None:
    server = booted(cloud, image(cloud))
    cloud.write(server, "its own")
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    kept.unlink()
    kept.mkdir()
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert cloud.read(server)[0] == "of the image" and "its own" in cloud.read(server)
    cloud.check_clean(server)


@pytest.mark.parametrize("end", ["again", "uploaded", "undone", "accepted"])
def test_a_host_that_dies_while_it_makes_an_image_leaves_nothing_that_nobody_knows_of(
    cloud: SharedCloud, kept: Path, end: str
) -> None:
    server = booted(cloud, image(cloud))
    instance = cloud.record(server, "cell1")
    host = cloud.embedded.computes[cloud.host_of(server)].host
    record = cloud.admin.image.create_image(
        name="begun", disk_format="raw", container_format="bare", allow_duplicates=True
    )
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(made_images, "_settle", lambda _host, _note: False)
        if end != "accepted":
            patches.setattr(injector, "reach", _dies)
        with suppress(SystemExit):
            made_images.make(host, admin_context(), instance, record.id)
    assert (kept / record.id).exists() and len(notes(cloud)) == 1
    if end == "uploaded":
        cloud.fail("status", "/locations", method="GET", service="image", status=403)
        assert made_images.make(host, admin_context(), instance, record.id) is None
    if end == "undone":
        host.images.delete(admin_context(), record.id)
    if end == "again":
        assert made_images.make(host, admin_context(), instance, record.id)
    else:
        made_images.delete_unfinished(host)
    assert (kept / record.id).exists() is (end in ("again", "accepted"))
    assert notes(cloud) == []


def _dies(_point: str) -> None:
    raise SystemExit
