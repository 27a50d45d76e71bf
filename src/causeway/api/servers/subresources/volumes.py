"""``/servers/{server_id}/os-volume_attachments``. Source: Compute API reference, "Servers with volume attachments"."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import IGNORED_QUERY, to_bool
from causeway.api.servers import hosts, loading, schemas
from causeway.api.servers.loading import Home
from causeway.api.servers.subresources import volume_swap
from causeway.api.validation import is_uuid
from causeway.model import operations, server_actions
from causeway.model.block_device import BlockDevice
from causeway.model.exclusion import Work, tasks_beside
from causeway.model.server_actions import ServerAction
from causeway.model.states import SHELVED, VmState
from causeway.operations.volumes import DetachMemory
from causeway.requests.asking import ask_at_once
from causeway.store.api import build_requests
from causeway.store.cell import block_devices, instances
from causeway.store.listing import Listed

RULE = "os_compute_api:os-volumes-attachments:"
# From this version on volumes can be attached to and detached from shelved servers, too.
_OF_SHELVED = (2, 20)


def _view(request: ApiRequest, device: BlockDevice) -> dict[str, Any]:
    minor = request.version.minor
    shown: dict[str, Any] = {"volumeId": device.volume_id, "serverId": device.instance_uuid}
    if minor < 89:
        shown["id"] = device.volume_id
    if device.device_name:
        shown["device"] = device.device_name
    if minor >= 70:
        shown["tag"] = device.tag
    if minor >= 79:
        shown["delete_on_termination"] = device.delete_on_termination
    if minor >= 89:
        shown["attachment_id"] = device.attachment_id
        shown["bdm_uuid"] = device.uuid
    return shown


def _created_view(request: ApiRequest, device: BlockDevice) -> dict[str, Any]:
    """What POST answers. In Nova, 2.89 changed only the answers to GET."""
    minor = request.version.minor
    shown: dict[str, Any] = {
        "id": device.volume_id,
        "serverId": device.instance_uuid,
        "volumeId": device.volume_id,
        "device": device.device_name,
    }
    if minor >= 70:
        shown["tag"] = device.tag
    if minor >= 79:
        shown["delete_on_termination"] = device.delete_on_termination
    return shown


def _devices(request: ApiRequest, found: Listed) -> list[BlockDevice]:
    uuid = found.instance.uuid
    if found.cell_uuid is None:
        build_request = build_requests.find(request.services.api, uuid)
        devices = build_request.block_devices if build_request else []
    else:
        devices = block_devices.of_instance(request.services.cells.database(found.cell_uuid), uuid)
    return [device for device in devices if device.volume_id is not None]


def _load(request: ApiRequest, server_id: str, rule: str) -> list[BlockDevice]:
    found = loading.load(request, server_id, RULE + rule, columns=frozenset(), tags=False)
    return _devices(request, found)


def _one(devices: list[BlockDevice], server_id: str, volume_id: str) -> BlockDevice:
    for device in devices:
        if device.volume_id == volume_id:
            return device
    raise errors.VolumeNotFound(f"Instance {server_id} is not attached to volume {volume_id}: volume_id not found.")


@handler(query=schemas.LIST_VOLUMES, answer=server_parts.VOLUMES)
def index(request: ApiRequest, server_id: str) -> Response:
    devices = _load(request, server_id, "index")
    limit, offset = (request.param(name) for name in ("limit", "offset"))
    start = int(offset) if offset else 0
    most = int(request.services.conf.api.max_limit)
    page = devices[start : start + (min(int(limit), most) if limit else most)]
    return Response(200, {"volumeAttachments": [_view(request, device) for device in page]})


@handler(query=IGNORED_QUERY, answer=server_parts.VOLUME)
def show(request: ApiRequest, server_id: str, volume_id: str) -> Response:
    device = _one(_load(request, server_id, "show"), server_id, volume_id)
    return Response(200, {"volumeAttachment": _view(request, device)})


def _load_for(request: ApiRequest, server_id: str, rule: str, action: ServerAction) -> Home:
    if request.version < _OF_SHELVED:
        action = action.without(*SHELVED)
    return loading.load_for_action(request, server_id, RULE + rule, action, tags=False)


@handler(
    body=schemas.ATTACH_VOLUME, statuses=[(1, 100, (200,)), (101, None, (202,))], answer=server_parts.ATTACH_VOLUME
)
def create(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["volumeAttachment"]
    volume_id = wanted["volumeId"]
    home = _load_for(request, server_id, "create", server_actions.ATTACH_VOLUME)
    if home.instance.vm_state is not VmState.SHELVED_OFFLOADED:
        # The host must attach it: if it is down, the volume would stay reserved.
        hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    present = block_devices.of_instance(home.database, server_id)
    if any(device.volume_id == volume_id for device in present):
        raise errors.BadRequest(f"Invalid volume: volume {volume_id} is already attached to instance {server_id}.")
    _check_volume(request, volume_id)
    device = request.services.conductor.add_volume(
        request.context,
        instance_uuid=server_id,
        volume_id=volume_id,
        device=wanted.get("device"),
        tag=wanted.get("tag"),
        delete_on_termination=to_bool(wanted.get("delete_on_termination", False)),
    )
    if request.version >= (2, 101):
        return Response(202)
    return Response(200, {"volumeAttachment": _created_view(request, device)})


def _check_volume(request: ApiRequest, volume_id: str) -> None:
    volume = request.services.volumes.show(request.context, volume_id)
    if volume.multiattach and request.version < (2, 60):
        raise errors.Conflict(f"Volume {volume_id} is multiattach: version 2.60 or later is needed to attach it.")
    if volume.status == "available" or (volume.multiattach and volume.status == "in-use"):
        return
    raise errors.BadRequest(
        f"Invalid volume: volume {volume_id} status must be available or downloading to reserve, but the current status "
        f"is {volume.status}."
    )


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, server_id: str, volume_id: str) -> Response:
    home = _load_for(request, server_id, "delete", server_actions.DETACH_VOLUME)
    device = _one(block_devices.of_instance(home.database, server_id), server_id, volume_id)
    if device.is_root:
        raise errors.BadRequest("Cannot detach a root device volume")
    if home.instance.host:
        # Bug 1909120: the volume would stay in detaching.
        hosts.check_up(request, home.instance.host, home.cell_uuid)
    ask_at_once(
        request.services, request.context, home.instance.uuid, operations.DETACH_VOLUME, DetachMemory(volume_id)
    )
    return Response(202)


@handler(body=schemas.UPDATE_VOLUME, statuses=(202,), answer=EMPTY)
def update(request: ApiRequest, server_id: str, volume_id: str) -> Response:
    """Sets delete_on_termination (2.85), or swaps the volume for another one, which only the block storage service may do."""
    wanted = request.body["volumeAttachment"]
    if not is_uuid(volume_id):
        raise errors.BadRequest(f"Invalid volume id {volume_id}.")
    is_swap = request.version < (2, 85) or wanted["volumeId"] != volume_id
    if is_swap:
        home = loading.load_anyones(request, server_id, RULE + "swap", server_actions.SWAP_VOLUME.name)
    else:
        home = loading.load_in_cell(request, server_id, RULE + "update", "update volume attachment")
    present = block_devices.of_instance(home.database, server_id)
    device = next((each for each in present if each.volume_id == volume_id), None)
    if request.version >= (2, 85):
        _change(request, home, _one(present, server_id, volume_id), wanted)
    if is_swap:
        volume_swap.swap(request, home, device, volume_id, wanted["volumeId"])
    return Response(202)


def _change(request: ApiRequest, home: Home, device: BlockDevice, wanted: dict[str, Any]) -> None:
    server_id = home.instance.uuid
    same = {
        "serverId": server_id,
        "id": device.volume_id,
        "device": device.device_name,
        "tag": device.tag,
    }
    for name, value in same.items():
        if name in wanted and wanted[name] != value:
            raise errors.BadRequest(f"The {name} of a volume attachment can't be changed.")
    if "delete_on_termination" not in wanted:
        return
    delete_on_termination = to_bool(wanted["delete_on_termination"])

    def write(connection: sa.Connection) -> None:
        instances.swap_in(connection, server_id, expected_task=tasks_beside(Work.DEVICE_RECORD))
        block_devices.update_in(connection, device.uuid, delete_on_termination=delete_on_termination)

    loading.change(request, home, write)
