"""Actions createImage and createBackup, and the image records that they and shelve need."""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, metadata, schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import operations, server_actions
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.server_actions import ServerAction
from causeway.operations.images import ImageMemory
from causeway.operations.requests import ask, discard_image
from causeway.store.cell import block_devices

# Prefixes of properties that are of one image only. Source: Compute service, images of servers.
_OWN = ("os_glance", "img_signature", "cinder_encryption_key")
_OWN_NAMES = frozenset(
    {"block_device_mapping", "bdm_v2", "root_device_name", "image_type", "backup_type", "instance_uuid"}
)


@handler(body=schemas_verbs.CREATE_IMAGE, statuses=(202,))
def create_image(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["createImage"]
    given = wanted.get("metadata", {})
    rule = "os_compute_api:servers:create_image"
    home = loading.take(request, server_id, rule, server_actions.CREATE_IMAGE, lockable=False)
    _check_metadata(request, given)
    present = block_devices.of_instance(home.database, server_id)
    if is_volume_backed(present):
        request.authorize(rule + ":allow_volume_backed", loading.target_of(home.instance))
        return _answer(request, _of_volumes(request, home, wanted["name"], given, present).id)
    image_id = ask_with_image(
        request, home, server_actions.CREATE_IMAGE, operations.CREATE_IMAGE, wanted["name"], given, ImageMemory
    )
    return _answer(request, image_id)


@handler(body=schemas_verbs.CREATE_BACKUP, statuses=(202,))
def create_backup(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["createBackup"]
    home = loading.take(request, server_id, "os_compute_api:os-create-backup", server_actions.CREATE_BACKUP)
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
) -> str:
    """Asks for an operation that puts the server's root disk into an image; returns the image's id.

    Whoever may not make the image is told so; then nothing has happened.
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
        prepare=lambda: _make(request, home.instance, image_id, name, given),
        discard=lambda: discard_image(services, context, image_id),
    )
    return image_id


def _make(request: ApiRequest, instance: Instance, image_id: str, name: str, given: dict[str, Any]) -> None:
    """The record of an image of the server's root disk, with what it inherits of the server's own image."""
    meta = instance.image_meta
    request.services.images.create(
        request.context,
        image_id=image_id,
        name=name,
        properties=properties(request, instance) | given,
        disk_format="qcow2",
        container_format="bare",
        min_disk=max(meta.min_disk if meta else 0, instance.flavor.root_gb),
        min_ram=meta.min_ram if meta else 0,
    )


def properties(request: ApiRequest, instance: Instance) -> dict[str, Any]:
    dropped = set(request.services.conf.non_inheritable_image_properties) | _OWN_NAMES
    inherited = instance.image_meta.properties if instance.image_meta else {}
    kept = {key: value for key, value in inherited.items() if key not in dropped and not key.startswith(_OWN)}
    return kept | {
        "base_image_ref": instance.image_ref,
        "instance_uuid": instance.uuid,
        "user_id": request.user_id,
        "image_type": "snapshot",
    }


def _check_metadata(request: ApiRequest, given: dict[str, Any]) -> None:
    # From 2.39 on the image service's own limits count.
    if request.version < (2, 39):
        metadata.check_quota(request, request.project_id, given)


def _of_volumes(
    request: ApiRequest, home: Home, name: str, given: dict[str, Any], present: list[BlockDevice]
) -> ImageMeta:
    """An image without data that names a snapshot of each volume: servers made from it get volumes made from them."""
    loading.begin_action(request, home, server_actions.CREATE_IMAGE)
    try:
        mapping = [
            {
                "source_type": "snapshot",
                "destination_type": "volume",
                "snapshot_id": request.services.volumes.create_snapshot(
                    request.context, device.volume_id, name=f"snapshot for {name}"
                ),
                "volume_size": device.volume_size,
                "boot_index": device.boot_index,
                "device_name": device.device_name,
                "delete_on_termination": device.delete_on_termination,
            }
            for device in present
            if device.volume_id is not None
        ]
        meta = home.instance.image_meta
        image = request.services.images.create(
            request.context,
            name=name,
            properties=properties(request, home.instance)
            | given
            | {
                "bdm_v2": "True",
                "block_device_mapping": json.dumps(mapping),
                "root_device_name": home.instance.root_device_name,
            },
            disk_format="raw",
            container_format="bare",
            min_disk=meta.min_disk if meta else 0,
            min_ram=meta.min_ram if meta else 0,
        )
        request.services.images.upload(request.context, image.id, Path("/dev/null"), 0)
        return image
    finally:
        loading.let_go(home)


def _answer(request: ApiRequest, image_id: str) -> Response:
    if request.version >= (2, 45):
        return Response(202, {"image_id": image_id})
    prefix = request.services.conf.api.glance_link_prefix
    root = prefix.rstrip("/") if prefix else request.link_root(versioned=False)
    return Response(202, headers={"Location": f"{root}/images/{image_id}"})
