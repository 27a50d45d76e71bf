"""Disks are clones of images that the real Glance keeps in the hosts' own Ceph; all other images are downloaded, and imported
once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.real_services import ceph
from tests.integration.real_services.ceph import Ceph
from tests.integration.real_services.ceph_services import CEPH, ON_CEPH, CephServices
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.test_ceph_volumes import raw_image
from tests.integration.real_services.test_real_guests import ended, report

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]
HOST = "cell1-host1"
SECRET = str(uuid.uuid4())


class CloudOnCeph(GuestCloud):
    """Its hosts keep disks in the cluster in which Glance keeps images."""

    @property
    def ceph(self) -> Ceph:
        assert isinstance(self.services, CephServices)
        return self.services.ceph

    def hypervisor(self, host: str) -> dict[str, dict[str, str]]:
        options = super().hypervisor(host)
        options["libvirt"] |= {
            "images_type": "rbd",
            "images_rbd_pool": "vms",
            "images_rbd_ceph_conf": str(self.ceph.configuration("compute")),
            "rbd_user": "compute",
            "rbd_secret_uuid": SECRET,
        }
        return options

    def parent(self, image: str) -> str | None:
        """What an image of a pool stands on."""
        found = json.loads(self.ceph.run("rbd", "info", image, "--format", "json")).get("parent")
        return f"{found['pool']}/{found['image']}@{found['snapshot']}" if found else None

    def names(self, pool: str) -> list[str]:
        return self.ceph.run("rbd", "ls", pool).split()

    def downloaded(self, image: Any) -> list[Path]:
        """The files of the image in hosts' caches."""
        return list(self.directory.glob(f"**/_base/{image.id}"))


@pytest.fixture(scope="module")
def running() -> Iterator[CloudOnCeph]:
    if reason := ceph.missing():
        pytest.skip(reason)
    with guest_cloud_here(cells={"cell1": [HOST]}, storage=(CEPH,), networking=ON_CEPH, kind=CloudOnCeph) as cloud:
        assert isinstance(cloud, CloudOnCeph)
        yield cloud


@pytest.fixture
def cloud(running: CloudOnCeph) -> Iterator[CloudOnCeph]:
    yield running
    running.delete_all()


def test_a_disk_is_a_clone_of_glance_s_raw_image_which_can_be_deleted(cloud: CloudOnCeph, tmp_path: Path) -> None:
    image = raw_image(cloud, tmp_path)
    server = cloud.boot_on(HOST, image_id=image.id)
    before = report(cloud, server)
    assert cloud.parent(f"vms/{server.id}_disk") == f"images/{image.id}@snap"
    assert cloud.downloaded(image) == []
    assert f"base_{image.id}" not in cloud.names("vms")

    cloud.member.image.delete_image(image.id)
    assert image.id not in cloud.names("images")
    cloud.member.compute.reboot_server(server.id, "HARD")
    ended(cloud, server, "ACTIVE")
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)


def test_a_qcow2_image_in_the_same_ceph_is_imported_as_raw(cloud: CloudOnCeph) -> None:
    """Bug 1816686."""
    server = cloud.boot_on(HOST)
    report(cloud, server)
    image = str(cloud.member.compute.get_server(server).image.id)
    assert image in cloud.names("images")
    assert cloud.parent(f"vms/{server.id}_disk") == f"vms/base_{image}@snap"


def test_an_image_in_another_store_is_imported_once_for_all_servers(cloud: CloudOnCeph, tmp_path: Path) -> None:
    """Bug 1858877."""
    raw_image(cloud, tmp_path)
    image = cloud.member.image.create_image(name="elsewhere", disk_format="raw", container_format="bare")
    with (tmp_path / "raw").open("rb") as data:
        headers = {"Content-Type": "application/octet-stream", "X-Image-Meta-Store": "fs"}
        answer = cloud.member.image.put(f"/images/{image.id}/file", data=data, headers=headers)
    assert answer.status_code == 204, answer.text
    assert image.id not in cloud.names("images")

    servers = [cloud.boot_on(HOST, image_id=image.id) for _ in range(2)]
    report(cloud, servers[1])
    for server in servers:
        assert cloud.parent(f"vms/{server.id}_disk") == f"vms/base_{image.id}@snap"
    assert cloud.names("vms").count(f"base_{image.id}") == 1


def test_an_unshelved_disk_stands_alone_and_the_shelved_image_is_gone(cloud: CloudOnCeph, tmp_path: Path) -> None:
    """Bugs 1653953 and 1860990."""
    image = raw_image(cloud, tmp_path)
    server = cloud.boot_on(HOST, image_id=image.id)
    before = report(cloud, server)
    kept = set(cloud.names("images"))
    for number in (1, 2):
        cloud.member.compute.shelve_server(server.id)
        ended(cloud, server, "SHELVED_OFFLOADED")
        assert len(set(cloud.names("images")) - kept) == 1
        assert f"{server.id}_disk" not in cloud.names("vms")
        cloud.member.compute.unshelve_server(server.id)
        ended(cloud, server, "ACTIVE")
        now = report(cloud, server, after_boot=before.boot + number - 1)
        assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + number)
        assert cloud.parent(f"vms/{server.id}_disk") is None
        assert set(cloud.names("images")) == kept


def test_an_image_of_a_server_is_made_in_glance_s_pool_if_the_host_may_write_there(
    cloud: CloudOnCeph, tmp_path: Path
) -> None:
    image = raw_image(cloud, tmp_path)
    server = cloud.boot_on(HOST, image_id=image.id)
    before = report(cloud, server)
    uploaded = cloud.member.compute.create_server_image(server, "uploaded", wait=True, timeout=200)
    assert cloud.member.image.get_image(uploaded.id).disk_format == "qcow2"
    names = cloud.names("images")

    may = "profile rbd pool=vms, profile rbd pool=volumes, profile rbd pool=images"
    cloud.ceph.run("ceph", "auth", "caps", "client.compute", "mon", "profile rbd", "mgr", "profile rbd", "osd", may)
    made = cloud.member.compute.create_server_image(server, "made", wait=True, timeout=200)
    found = cloud.member.image.get_image(made.id)
    assert (found.disk_format, found.size, found.hash_value, found.checksum) == ("raw", 1 << 30, None, None)
    assert set(cloud.names("images")) == {*names, made.id}
    assert cloud.parent(f"images/{made.id}") is None
    assert cloud.ceph.run("rbd", "snap", "ls", f"vms/{server.id}_disk") == ""

    other = cloud.boot_on(HOST, image_id=made.id)
    said = report(cloud, other, after_boot=before.boot)
    assert (said.first("vda"), said.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    assert cloud.parent(f"vms/{other.id}_disk") == f"images/{made.id}@snap"
    cloud.member.image.delete_image(made.id)
    assert set(cloud.names("images")) == set(names)

    cloud.member.compute.shelve_server(server.id)
    ended(cloud, server, "SHELVED_OFFLOADED")
    (shelved,) = set(cloud.names("images")) - set(names)
    assert cloud.member.image.get_image(shelved).disk_format == "raw" and cloud.parent(f"images/{shelved}") is None
    cloud.member.compute.unshelve_server(server.id)
    ended(cloud, server, "ACTIVE")
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    assert cloud.parent(f"vms/{server.id}_disk") is None
    assert set(cloud.names("images")) == set(names)
