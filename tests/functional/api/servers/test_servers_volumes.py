"""Volumes of a server: listed, attached, changed and detached."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import pytest

from causeway import errors
from causeway.clients.volume import Volume
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store.api import journal
from causeway.store.cell import block_devices, instances
from tests.functional.api.servers.server_parts import (
    OTHER,
    PORT,
    VOLUME,
    server_with_parts,
    set_states,
)


@pytest.fixture
def server(cloud: Any) -> Instance:
    return server_with_parts(cloud)


def attach(cloud: Any, server: Instance, volume_id: str = VOLUME, **fields: Any) -> BlockDevice:
    device = BlockDevice(
        str(uuids.uuid4()), server.uuid, "volume", "volume", volume_id=volume_id, device_name="/dev/vdb", **fields
    )
    block_devices.add(cloud.cell("cell1"), device)
    return device


class TestVolumes:
    @pytest.fixture(autouse=True)
    def volume(self, volumes: Any, conductor: Any) -> None:
        volumes.answers["show"] = lambda _context, volume_id: Volume(volume_id, "available", 1)
        conductor.answers["add_volume"] = lambda _context, **given: BlockDevice(
            "d0000000-0000-0000-0000-000000000001",
            given["instance_uuid"],
            "volume",
            "volume",
            volume_id=given["volume_id"],
            device_name=given["device"] or "/dev/vdb",
            tag=given["tag"],
            delete_on_termination=given["delete_on_termination"],
            attachment_id="e0000000-0000-0000-0000-000000000001",
        )

    def test_volumes_are_listed_and_shown(self, api: Any, cloud: Any, server: Instance) -> None:
        device = attach(cloud, server, tag="data", delete_on_termination=True)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        (old,) = api.get(path, version="2.1").json["volumeAttachments"]
        assert old == {"id": VOLUME, "volumeId": VOLUME, "serverId": server.uuid, "device": "/dev/vdb"}
        new = api.get(f"{path}/{VOLUME}", version="2.89").json["volumeAttachment"]
        assert new == {
            "volumeId": VOLUME,
            "serverId": server.uuid,
            "device": "/dev/vdb",
            "tag": "data",
            "delete_on_termination": True,
            "attachment_id": None,
            "bdm_uuid": device.uuid,
        }
        assert api.get(f"{path}?limit=1&offset=1").json == {"volumeAttachments": []}
        assert api.get(f"{path}/{OTHER}").status == 404

    def test_a_volume_is_attached(self, api: Any, conductor: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/os-volume_attachments"
        wanted = {"volumeId": VOLUME, "device": "/dev/vdc", "tag": "data", "delete_on_termination": True}
        answer = api.post(path, {"volumeAttachment": wanted}, version="2.96")
        assert answer.status == 200 and answer.json["volumeAttachment"]["device"] == "/dev/vdc"
        answer = api.post(path, {"volumeAttachment": {"volumeId": OTHER}}, version="2.101")
        assert (answer.status, answer.text) == (202, "")
        assert len(conductor.calls) == 2

    @pytest.mark.parametrize(
        ("version", "more"),
        [
            ("2.1", {}),
            ("2.69", {}),
            ("2.70", {"tag": None}),
            ("2.78", {"tag": None}),
            ("2.79", {"tag": None, "delete_on_termination": False}),
            ("2.88", {"tag": None, "delete_on_termination": False}),
            ("2.89", {"tag": None, "delete_on_termination": False}),
            ("2.100", {"tag": None, "delete_on_termination": False}),
        ],
    )
    @pytest.mark.parametrize("device", ["/dev/vdc", None])
    def test_an_attach_answers_what_its_version_has(
        self, api: Any, conductor: Any, server: Instance, version: str, more: Any, device: str | None
    ) -> None:
        """Not what is listed: the id stays when 2.89 takes it from there, and the device is named even if there is none."""
        conductor.answers["add_volume"] = lambda *_, **given: BlockDevice(
            str(uuids.uuid4()), server.uuid, "volume", "volume", volume_id=given["volume_id"], device_name=device
        )
        path = f"/servers/{server.uuid}/os-volume_attachments"
        answer = api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}, version=version)
        base = {"id": VOLUME, "serverId": server.uuid, "volumeId": VOLUME, "device": device}
        assert answer.json == {"volumeAttachment": base | more}

    @pytest.mark.parametrize(
        ("version", "keys"),
        [
            ("2.69", {"id"}),
            ("2.70", {"id", "tag"}),
            ("2.79", {"id", "tag", "delete_on_termination"}),
            ("2.88", {"id", "tag", "delete_on_termination"}),
            ("2.89", {"tag", "delete_on_termination", "attachment_id", "bdm_uuid"}),
        ],
    )
    def test_a_volume_shows_what_its_version_has(
        self, api: Any, cloud: Any, server: Instance, version: str, keys: set[str]
    ) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        (listed,) = api.get(path, version=version).json["volumeAttachments"]
        assert listed == api.get(f"{path}/{VOLUME}", version=version).json["volumeAttachment"]
        assert listed.keys() == {"volumeId", "serverId", "device"} | keys

    def test_a_volume_is_attached_to_a_resized_server(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.RESIZED)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).status == 202

    def test_a_volume_is_attached_to_an_offloaded_server_from_2_20(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        """There is no host to send it to: the volume is reserved until the server is restored."""
        instances.update(cloud.cell("cell1"), server.uuid, vm_state=VmState.SHELVED_OFFLOADED, host=None)
        path, wanted = f"/servers/{server.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": VOLUME}}
        assert api.post(path, wanted, version="2.20").status == 200
        assert api.post(path, wanted, version="2.19").status == 409

    def test_a_swap_is_for_volumes_that_block_storage_moves(
        self, admin: Any, cloud: Any, server: Instance, volumes: Any
    ) -> None:
        """What else is checked: tests/functional/servers/volumes/test_volume_swap.py."""
        path, wanted = f"/servers/{server.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": OTHER}}
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.85").status == 404
        attach(cloud, server)
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.84").status == 409
        volumes.answers["show"] = errors.VolumeNotFound("Volume could not be found.")
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.84").status == 404

    @pytest.mark.parametrize(
        ("volume", "status"),
        [
            (Volume(VOLUME, "in-use", 1), 400),
            (Volume(VOLUME, "error", 1), 400),
            (errors.VolumeNotFound("Volume could not be found."), 404),
            (errors.ServiceFailed("The volume service does not answer."), 503),
        ],
    )
    def test_volumes_that_do_not_do(
        self, api: Any, volumes: Any, conductor: Any, server: Instance, volume: Any, status: int
    ) -> None:
        volumes.answers["show"] = volume
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).status == status
        assert conductor.calls == []

    @pytest.mark.parametrize(
        ("wanted", "version"),
        [
            ({}, "2.96"),
            ({"volumeId": "x"}, "2.96"),
            ({"volumeId": VOLUME, "device": "vdb"}, "2.96"),
            ({"volumeId": VOLUME, "tag": "t"}, "2.48"),
            ({"volumeId": VOLUME, "delete_on_termination": True}, "2.78"),
            ({"volumeId": VOLUME, "tag": "a/b"}, "2.96"),
        ],
    )
    def test_bad_attachments_are_refused(self, api: Any, server: Instance, wanted: Any, version: str) -> None:
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": wanted}, version=version).fault == "badRequest"

    def test_a_volume_is_not_attached_twice_to_a_server(self, api: Any, cloud: Any, server: Instance) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).fault == "badRequest"

    def test_a_volume_is_detached_by_an_operation(self, api: Any, cloud: Any, conductor: Any, server: Instance) -> None:
        attach(cloud, server)
        attach(cloud, server, OTHER, boot_index=0)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.delete(f"{path}/{OTHER}").fault == "badRequest"
        assert api.delete(f"{path}/{PORT}").fault == "itemNotFound"
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert api.delete(f"{path}/{VOLUME}").fault == "conflictingRequest"
        set_states(cloud, server, VmState.RESIZED)
        assert api.delete(f"{path}/{VOLUME}").status == 202
        assert [call[0] for call in conductor.calls] == ["run_move"]
        (operation,) = journal.of_server(cloud.services.api, server.uuid)
        assert (operation.recipe, operation.resource_id, operation.pivoted) == ("detach_volume", VOLUME, True)

    def test_delete_on_termination_can_be_changed(self, api: Any, cloud: Any, server: Instance) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments/{VOLUME}"
        wanted = {"volumeId": VOLUME, "delete_on_termination": True}
        assert api.put(path, {"volumeAttachment": wanted}).status == 202
        assert api.get(path).json["volumeAttachment"]["delete_on_termination"] is True
        assert api.put(path, {"volumeAttachment": wanted | {"tag": "other"}}).fault == "badRequest"
        assert api.put(path, {"volumeAttachment": {"volumeId": OTHER}}).fault == "forbidden"
