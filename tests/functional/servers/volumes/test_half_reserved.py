"""The volume service died in the middle of a reservation: the volume is reserved, and nobody has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openstack
import pytest

from causeway.audit import audit_embedded
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {
    "overrides": {
        "moves": {"stuck_retry_interval": 0.5, "first_pause": 0.1},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = pytest.mark.embedded("the volume service dies in a request")

RESERVE = "call.volume POST /v3/attachments.request"


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.devices.half_reserved.SETTLED_AFTER", 0.0)


@pytest.fixture
def volume(cloud: Cloud) -> Iterator[Any]:
    with cloud.own_volume() as volume:
        yield volume


@pytest.fixture
def half_reserved(cloud: Cloud, at_point: Any) -> Callable[[Any], None]:
    """The next reservation of a volume gets as far as the volume's state, and has no answer."""

    def reserve(volume: Any) -> None:
        def die() -> None:
            cloud.admin.block_storage.reset_volume_status(volume.id, status="reserved")
            cloud.fail("status", "/attachments$", service="volume", method="POST", status=503, times=1)

        at_point(RESERVE, die)

    return reserve


def deleted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")


def test_the_volume_of_an_attach_is_available_again(cloud: Cloud, volume: Any, half_reserved: Any) -> None:
    """And can be attached."""
    server = cloud.boot()
    half_reserved(volume)
    with pytest.raises(openstack.exceptions.HttpException):
        cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    cloud.volume_becomes(volume, "available")
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    cloud.volume_becomes(volume, "in-use")
    deleted(cloud, server)


def test_the_volume_of_a_build_is_reserved_again(cloud: Cloud, volume: Any, half_reserved: Any) -> None:
    half_reserved(volume)
    devices = [
        {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": cloud.image_id},
        {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": volume.id},
    ]
    server = cloud.boot(block_device_mapping=devices)
    assert [each.id for each in cloud.show(server).attached_volumes or []] == [volume.id]
    deleted(cloud, server)


def test_a_reserved_volume_that_the_service_refuses_stays_as_it_is(cloud: Cloud, volume: Any) -> None:
    """An administrator may have reserved it."""
    server = cloud.boot()
    cloud.admin.block_storage.reset_volume_status(volume.id, status="reserved")
    with pytest.raises(openstack.exceptions.BadRequestException):
        cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    cloud.settle()
    assert cloud.admin.block_storage.get_volume(volume.id).status == "reserved"
    cloud.admin.block_storage.reset_volume_status(volume.id, status="available")
    deleted(cloud, server)
