"""Several requests attach volumes to one server at the same time: each gets what it would have got alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.devices import device_records
from tests.functional.servers.moves_cloud import Cloud

pytestmark = pytest.mark.embedded("replaces code")


@pytest.fixture
def all_reserve_first(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Called with a number: so many attaches wait for one another before they reserve their volumes."""

    def wait_for(count: int) -> None:
        barrier, reserve = threading.Barrier(count, timeout=30), device_records.reserve_volume

        def wait(*arguments: Any, **named: Any) -> str:
            barrier.wait()
            return reserve(*arguments, **named)

        monkeypatch.setattr(device_records, "reserve_volume", wait)

    return wait_for


def at_once(cloud: Cloud, server: Any, bodies: list[dict[str, Any]]) -> list[int]:
    def attach(body: dict[str, Any]) -> int:
        compute = cloud.connection("demo").compute
        path = f"/servers/{server.id}/os-volume_attachments"
        return int(compute.post(path, json={"volumeAttachment": body}, microversion="2.60").status_code)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(attach, bodies))


def names(cloud: Cloud, server: Any) -> list[str]:
    return sorted(each.device for each in cloud.member.compute.volume_attachments(server.id))


def test_all_are_attached_each_under_its_own_name(cloud: Cloud, all_reserve_first: Callable[[int], None]) -> None:
    """1937375 on Launchpad; it is what Terraform does."""
    server, several = cloud.boot(), [cloud.volume() for _ in range(3)]
    all_reserve_first(3)
    assert at_once(cloud, server, [{"volumeId": volume.id} for volume in several]) == [200] * 3
    assert names(cloud, server) == ["/dev/vdb", "/dev/vdc", "/dev/vdd"]
    assert {cloud.admin.block_storage.get_volume(volume.id).status for volume in several} == {"in-use"}


def test_one_name_goes_to_one_of_them(cloud: Cloud, all_reserve_first: Callable[[int], None]) -> None:
    server, several = cloud.boot(), [cloud.volume() for _ in range(2)]
    all_reserve_first(2)
    codes = at_once(cloud, server, [{"volumeId": volume.id, "device": "/dev/vdx"} for volume in several])
    assert sorted(codes) == [200, 409]
    assert names(cloud, server) == ["/dev/vdx"]
    (refused,) = [volume for volume, code in zip(several, codes, strict=True) if code == 409]
    cloud.volume_becomes(refused, "available")


def test_a_server_that_has_all_disks_gets_no_more(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_records, "string", SimpleNamespace(ascii_lowercase="ab"))
    server, first, second = cloud.boot(), cloud.volume(), cloud.volume()
    cloud.attach(server, first)
    assert at_once(cloud, server, [{"volumeId": second.id}]) == [403]
    cloud.volume_becomes(second, "available")
