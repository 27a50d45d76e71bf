"""Actions rescue and unrescue. A rescued server boots from a disk made from an image, with its own disks beside it."""

from __future__ import annotations

from typing import Any

import os_traits

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import hosts, loading, passwords, schemas
from causeway.api.servers.actions import schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import operations, server_actions
from causeway.model import rescue as records
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.rescue import RescueImage
from causeway.model.states import PowerState, VmState
from causeway.operations.rescue import RescueMemory, UnrescueMemory
from causeway.store.cell import block_devices
from causeway.store.cell import hosts as cell_hosts

# From this version on a volume-backed server can be rescued, if its image and its host allow it.
_VOLUME_BACKED = (2, 87)
_NO_VOLUMES = "Cannot rescue a volume-backed instance"


@handler(body=schemas_verbs.RESCUE, answer=answers.RESCUE)
def rescue(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["rescue"] or {}
    action = server_actions.RESCUE
    home = loading.load_for_action(request, server_id, "os_compute_api:os-rescue", action)
    _check_host(request, home)
    asked_for = wanted.get("rescue_image_ref")
    present = block_devices.of_instance(home.database, server_id)
    image = _image(request, home.instance, asked_for)
    _check_volumes(request, home, present, image)
    memory = RescueMemory(_known(image, home.instance), asked_for, was_running=_runs(home.instance))
    password = passwords.chosen(request, wanted)
    loading.ask_for(request, home, action, operations.RESCUE, memory, admin_password=password)
    return Response(200, passwords.shown(request, password))


@handler(body=schemas.bare("unrescue"), statuses=(202,), answer=EMPTY)
def unrescue(request: ApiRequest, server_id: str) -> Response:
    action = server_actions.UNRESCUE
    home = loading.load_for_action(request, server_id, "os_compute_api:os-unrescue", action)
    _check_host(request, home)
    memory = UnrescueMemory(records.of_record(home.instance.system_metadata))
    loading.ask_for(request, home, action, operations.UNRESCUE, memory)
    return Response(202)


def _check_host(request: ApiRequest, home: Home) -> None:
    """Raises Conflict unless the server's host is up."""
    host = loading.check_host(home.instance)
    # In Nova a request to a host that is down is lost, and the server keeps its task.
    hosts.check_up(request, host, home.cell_uuid)


def _runs(instance: Instance) -> bool:
    """Whether the server runs, and is started again if it can't be rescued."""
    if instance.vm_state is VmState.ERROR:
        return instance.power_state is PowerState.RUNNING
    return instance.vm_state is VmState.ACTIVE


def _image(request: ApiRequest, instance: Instance, asked_for: str | None) -> RescueImage | None:
    """The image to rescue with: the one asked for, else the server's own, else [libvirt] rescue_image_id. None: there is none."""
    if asked_for is not None:
        return _usable(request, instance, asked_for)
    own = instance.image_meta
    base = instance.system_metadata.get("image_base_image_ref")
    known = base or instance.image_ref or (own.id if own is not None else "")
    if known:
        if known != instance.image_ref:
            # Its volume names it, and users write that.
            _usable(request, instance, known)
        # With the properties from when the server was made: the image service may no longer have the image.
        return records.of_image(known, own.properties if own is not None else {})
    usual = request.services.conf.libvirt.rescue_image_id
    return _usable(request, instance, usual) if usual else None


def _usable(request: ApiRequest, instance: Instance, image_id: str) -> RescueImage:
    """Raises BadRequest if there is no such image, or if a disk made from it would be larger than the server's own."""
    unsupported = errors.BadRequest(f"Requested rescue image '{image_id}' is not supported")
    try:
        image = request.services.images.show(request.context, image_id)
    except errors.ImageNotFound as missing:
        raise unsupported from missing
    if image.status != "active" or _has_devices(image.properties):
        raise unsupported
    misfit, most = image.misfit(request.services.conf.compute.allowed_image_formats), instance.flavor.root_gb << 30
    if misfit is None and 0 < most < image.disk_bytes:
        misfit = f"As a disk it has {image.disk_bytes} bytes, and the server's flavor {most}."
    if misfit is not None:
        raise errors.BadRequest(f"{unsupported.message}: {misfit}")
    return records.of_image(image_id, image.properties)


def _has_devices(properties: dict[str, Any]) -> bool:
    """Whether the image is that of a volume-backed server, which has no data."""
    return properties.get("block_device_mapping") not in (None, "", "[]", [])


def _known(image: RescueImage | None, instance: Instance) -> RescueImage:
    if image is None:
        raise _not_rescuable(instance, "No image is known to rescue it with: name one (rescue_image_ref)")
    if image.misfit is not None:
        raise _not_rescuable(instance, image.misfit)
    return image


def _check_volumes(request: ApiRequest, home: Home, present: list[BlockDevice], image: RescueImage | None) -> None:
    """Raises Conflict if a volume is not in use, and BadRequest if a root volume, image or host can't be rescued that way."""
    instance = home.instance
    for device in present:
        if not device.is_volume or device.volume_id is None:
            continue
        status = request.services.volumes.show(request.context, device.volume_id).status
        if status != "in-use":
            raise errors.Conflict(
                f"Cannot 'rescue' instance {instance.uuid}: volume {device.volume_id} is not in-use, it is {status}."
            )
    if not is_volume_backed(present):
        return
    says_how = image is not None and image.device is not None and image.bus is not None
    if request.version < _VOLUME_BACKED or not says_how:
        raise _not_rescuable(instance, _NO_VOLUMES)
    nodes = cell_hosts.list_nodes(home.database, host=instance.host)
    traits = [request.services.placement.get_traits(node.uuid) for node in nodes]
    if not any(os_traits.COMPUTE_RESCUE_BFV in of_node for of_node in traits):
        raise _not_rescuable(instance, "Host unable to rescue a volume-backed instance")


def _not_rescuable(instance: Instance, reason: str) -> errors.BadRequest:
    return errors.BadRequest(f"Instance {instance.uuid} cannot be rescued: {reason}")
