"""Actions createImage and createBackup, and the image records that they and shelve need."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable
from functools import partial
from typing import Any

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading
from causeway.api.servers.actions import schemas_verbs
from causeway.api.servers.loading import Home
from causeway.api.servers.subresources import metadata
from causeway.model import operations, server_actions
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.server_actions import ServerAction
from causeway.model.states import VmState
from causeway.operations.images import ImageMemory
from causeway.operations.requests import discard_image
from causeway.operations.volume_images import VolumeImageMemory
from causeway.requests.asking import ask
from causeway.store.cell import block_devices
from causeway.virt import quiescing

# Prefixes of properties that other images don't inherit. Source: Compute service, images of servers.
_OWN = ("os_glance", "img_signature", "cinder_encryption_key")
_OWN_NAMES = frozenset(
    {"block_device_mapping", "bdm_v2", "root_device_name", "image_type", "backup_type", "instance_uuid"}
)


@handler(body=schemas_verbs.CREATE_IMAGE, statuses=(202,), answer=answers.CREATE_IMAGE)
def create_image(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["createImage"]
    given = wanted.get("metadata", {})
    rule = "os_compute_api:servers:create_image"
    home = loading.load_for_action(request, server_id, rule, server_actions.CREATE_IMAGE)
    _check_metadata(request, given)
    present = block_devices.of_instance(home.database, server_id)
    if is_volume_backed(present):
        request.authorize(rule + ":allow_volume_backed", loading.target_of(home.instance))
        return _answer(request, _ask_for_snapshots(request, home, wanted["name"], given, present))
    image_id = ask_with_image(
        request, home, server_actions.CREATE_IMAGE, operations.CREATE_IMAGE, wanted["name"], given, ImageMemory
    )
    return _answer(request, image_id)


@handler(body=schemas_verbs.CREATE_BACKUP, statuses=(202,), answer=answers.CREATE_BACKUP)
def create_backup(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["createBackup"]
    home = loading.load_for_action(request, server_id, "os_compute_api:os-create-backup", server_actions.CREATE_BACKUP)
    _check_metadata(request, wanted.get("metadata", {}))
    if is_volume_backed(block_devices.of_instance(home.database, server_id)):
        raise errors.BadRequest("Backup is not supported for volume-backed instances.")
    given = wanted.get("metadata", {}) | {"image_type": "backup", "backup_type": wanted["backup_type"]}
    rotation = int(wanted["rotation"])
    memory = partial(ImageMemory, rotation=rotation, backup_type=wanted["backup_type"])
    image_id = ask_with_image(
        request, home, server_actions.CREATE_BACKUP, operations.CREATE_BACKUP, wanted["name"], given, memory
    )
    return _answer(request, image_id) if rotation > 0 else Response(202)


def ask_with_image(
    request: ApiRequest,
    home: Home,
    action: ServerAction,
    recipe: str,
    name: str,
    given: dict[str, Any],
    memory: Callable[[str], Any],
    **record: Any,
) -> str:
    """Makes the record of an image, and asks for the operation that fills it; returns the image's id.

    ``record``: fields of the record that differ from those of an image of the root disk. If the caller may not make the record,
    the image service's error is raised, and the operation is not asked for.
    """
    services, context, image_id = request.services, request.context, str(uuids.uuid4())
    ask(
        services,
        context,
        home.instance,
        home.cell_uuid,
        action,
        recipe,
        memory(image_id),
        prepare=lambda: _make(request, home.instance, image_id, name, given, record),
        discard=lambda: discard_image(services, context, image_id),
    )
    return image_id


def _make(
    request: ApiRequest, instance: Instance, image_id: str, name: str, given: dict[str, Any], record: dict[str, Any]
) -> None:
    """Makes the record of an image of the server, with the properties that it inherits from the server's own image."""
    meta = instance.image_meta
    of_disk: dict[str, Any] = {
        "disk_format": "qcow2",
        "container_format": "bare",
        "min_disk": max(meta.min_disk if meta else 0, instance.flavor.root_gb),
        "min_ram": meta.min_ram if meta else 0,
    }
    request.services.images.create(
        request.context,
        image_id=image_id,
        name=name,
        properties=properties(request, instance) | given,
        **(of_disk | record),
    )


def properties(request: ApiRequest, instance: Instance) -> dict[str, Any]:
    omitted = set(request.services.conf.non_inheritable_image_properties) | _OWN_NAMES
    inherited = instance.image_meta.properties if instance.image_meta else {}
    kept = {key: value for key, value in inherited.items() if key not in omitted and not key.startswith(_OWN)}
    return kept | {
        "base_image_ref": instance.image_ref,
        "instance_uuid": instance.uuid,
        "user_id": request.user_id,
        "image_type": "snapshot",
    }


def _check_metadata(request: ApiRequest, given: dict[str, Any]) -> None:
    # From 2.39 on only the image service's own limits hold.
    if request.version < (2, 39):
        metadata.check_quota(request, request.project_id, given)


def _ask_for_snapshots(
    request: ApiRequest, home: Home, name: str, given: dict[str, Any], present: list[BlockDevice]
) -> str:
    """Asks for an image that names a snapshot of each volume; returns its id."""
    instance = home.instance
    meta = instance.image_meta
    if instance.vm_state is VmState.ACTIVE and quiescing.is_required(instance):
        raise errors.Conflict(
            f"The file systems of server {instance.uuid} must be quiesced for an image (os_require_quiesce), which this cloud"
            " can't do while snapshots of volumes are made. Stop the server first."
        )
    request.services.volumes.check_snapshots_left(request.context, sum(device.is_volume for device in present))
    memory = partial(VolumeImageMemory, name=name, root=instance.root_device_name or "/dev/vda")
    min_disk, min_ram = (meta.min_disk, meta.min_ram) if meta else (0, 0)
    return ask_with_image(
        request, home, server_actions.CREATE_IMAGE, operations.CREATE_VOLUME_IMAGE, name, given, memory,
        disk_format="raw", min_disk=min_disk, min_ram=min_ram,
    )  # fmt: skip


def _answer(request: ApiRequest, image_id: str) -> Response:
    if request.version >= (2, 45):
        return Response(202, {"image_id": image_id})
    prefix = request.services.conf.api.glance_link_prefix
    root = prefix.rstrip("/") if prefix else request.link_root(versioned=False)
    return Response(202, headers={"Location": f"{root}/images/{image_id}"})
