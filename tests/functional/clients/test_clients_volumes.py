"""The volume client: volumes, and attachments as a move uses them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway import errors
from causeway.clients.rights import OF_SERVER
from causeway.clients.volume import Volume, VolumeClient
from causeway.context import RequestContext
from causeway.devcloud import Fault

HERE, THERE = {"host": "host1"}, {"host": "host2"}


@pytest.fixture
def volume(volumes: VolumeClient, demo: RequestContext) -> Volume:
    return volumes.wait_available(demo, volumes.create(demo, size=1, name="data").id)


def test_a_volume_becomes_available(volume: Volume, demo: RequestContext) -> None:
    assert (volume.status, volume.size, volume.name, volume.bootable) == ("available", 1, "data", False)
    assert volume.project_id == demo.project_id


def test_waiting_for_a_volume_that_breaks_ends(volumes: VolumeClient, demo: RequestContext, volume: Volume) -> None:
    volumes.create_attachment(demo, volume.id, str(uuid.uuid4()), called_as=OF_SERVER)
    with pytest.raises(errors.InvalidVolume, match="its status is reserved"):
        volumes.wait_available(demo, volume.id)
    with pytest.raises(errors.VolumeNotFound):
        volumes.wait_available(demo, str(uuid.uuid4()))


def test_a_volume_moves_with_its_server(
    volumes: VolumeClient, demo: RequestContext, volume: Volume, server_uuid: str
) -> None:
    first = volumes.create_attachment(demo, volume.id, server_uuid, called_as=OF_SERVER)
    assert not first.is_connected
    info = volumes.update_attachment(demo, first.id, HERE, "/dev/vdb")
    assert (info["serial"], info["data"]["volume_id"]) == (volume.id, volume.id)
    volumes.complete_attachment(demo, first.id)
    volumes.complete_attachment(demo, first.id)
    assert volumes.show(demo, volume.id).attachments[0]["server_id"] == server_uuid

    second = volumes.create_attachment(demo, volume.id, server_uuid, called_as=OF_SERVER)
    volumes.delete_attachment(demo, first.id)
    volumes.update_attachment(demo, second.id, THERE, "/dev/vdb")
    volumes.complete_attachment(demo, second.id)
    (left,) = volumes.attachments_of_server(demo, server_uuid)
    assert (left.id, left.status, left.volume_id, left.instance_uuid) == (second.id, "attached", volume.id, server_uuid)
    assert volumes.get_attachment(demo, second.id).is_connected


def test_a_volume_is_one_servers_and_one_hosts(
    volumes: VolumeClient, demo: RequestContext, volume: Volume, server_uuid: str
) -> None:
    first = volumes.create_attachment(demo, volume.id, server_uuid, HERE, called_as=OF_SERVER)
    assert first.is_connected
    volumes.complete_attachment(demo, first.id)
    with pytest.raises(errors.InvalidVolume):
        volumes.create_attachment(demo, volume.id, str(uuid.uuid4()), called_as=OF_SERVER)
    second = volumes.create_attachment(demo, volume.id, server_uuid, called_as=OF_SERVER)
    with pytest.raises(errors.RequestRefused, match="duplicate connectors"):
        volumes.update_attachment(demo, second.id, THERE)


def test_deleting_what_is_not_there_is_fine(volumes: VolumeClient, demo: RequestContext, volume: Volume) -> None:
    attachment = volumes.create_attachment(demo, volume.id, str(uuid.uuid4()), called_as=OF_SERVER)
    for _ in range(2):
        volumes.delete_attachment(demo, attachment.id)
    for _ in range(2):
        volumes.delete(demo, volume.id)
    with pytest.raises(errors.VolumeNotFound, match=attachment.id):
        volumes.get_attachment(demo, attachment.id)


def test_a_volume_in_use_is_not_deleted(volumes: VolumeClient, demo: RequestContext, volume: Volume) -> None:
    volumes.complete_attachment(
        demo, volumes.create_attachment(demo, volume.id, str(uuid.uuid4()), HERE, called_as=OF_SERVER).id
    )
    with pytest.raises(errors.InvalidVolume):
        volumes.delete(demo, volume.id)


def test_attachments_of_a_user_are_handled_without_their_token(
    volumes: VolumeClient, demo: RequestContext, nobody: RequestContext, volume: Volume, server_uuid: str
) -> None:
    nobody.project_id = demo.project_id
    attachment = volumes.create_attachment(nobody, volume.id, server_uuid, HERE, called_as=OF_SERVER)
    assert [each.id for each in volumes.attachments_of_server(nobody, server_uuid, volume_id=volume.id)] == [
        attachment.id
    ]
    volumes.complete_attachment(nobody, attachment.id)
    volumes.delete_attachment(nobody, attachment.id)
    assert volumes.show(demo, volume.id).status == "available"


def test_a_volume_beyond_the_quota_is_refused(volumes: VolumeClient, demo: RequestContext, around: Any) -> None:
    around.cloud.faults.add(Fault("status", service="volume", path="/volumes$", method="POST", status=413, times=1))
    with pytest.raises(errors.OverQuota):
        volumes.create(demo, size=1)
