"""Action rebuild: makes the server anew from an image, on its host, with its ports and volumes."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import flavors_and_images, holds, loading, passwords, show
from causeway.api.servers.actions import schemas_verbs
from causeway.api.servers.creating import access_addresses, create, image_devices
from causeway.api.servers.loading import Home
from causeway.api.servers.subresources import metadata
from causeway.api.servers.views import WITH_GROUPS, Extras, ServerView
from causeway.api.validation import is_uuid
from causeway.clients.volume import Volume
from causeway.model import machine_type, operations, server_actions
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.image import ImageMeta
from causeway.model.states import VmState
from causeway.operations.rebuild import RebuildMemory
from causeway.operations.rebuild_volume import RebuildVolumeMemory
from causeway.store import listing
from causeway.store.api import keypairs, mappings
from causeway.store.cell import block_devices

RULE = "os_compute_api:servers:rebuild"
_DIFFERENT_IMAGE = "Unable to rebuild with a different image for a volume-backed server."


@handler(body=schemas_verbs.REBUILD, statuses=(202,), answer=answers.REBUILD)
def rebuild(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["rebuild"]
    home = loading.load_for_action(request, server_id, RULE, server_actions.REBUILD)
    if wanted.get("trusted_image_certificates"):
        request.authorize(RULE + ":trusted_certs", loading.target_of(home.instance))
    image = _image(request, str(wanted["imageRef"]))
    present = block_devices.of_instance(home.database, server_id)
    _check_image(request, home, image, present)
    if is_volume_backed(present) and wanted.get("trusted_image_certificates"):
        raise errors.BadRequest("Image certificate validation is not supported for volume-backed servers.")
    changes = _changes(request, home, wanted)
    power_on = home.instance.vm_state is not VmState.STOPPED
    root = next((device for device in present if device.is_root and device.volume_id is not None), None)
    recipe, memory = operations.REBUILD, RebuildMemory(power_on=power_on)
    is_other_image = False
    if root is None:
        changes |= {"image_ref": image.id, "image_meta": image}
        is_other_image = image.id != home.instance.image_ref
    elif request.version >= (2, 93):
        changes |= {"image_meta": image}
        is_other_image = home.instance.image_meta is None or image.id != home.instance.image_meta.id
        recipe = operations.REBUILD_VOLUME
        memory = RebuildVolumeMemory(power_on=power_on, image_id=image.id, volume_id=root.volume_id or "")

    if is_other_image:
        # With another image, the guest gets the machine type of that image or the host's default.
        changes["system_metadata"] = machine_type.without(home.instance.system_metadata)

    def save_image() -> None:
        with request.services.api.write() as connection:
            mappings.set_in_spec_in(connection, server_id, image=image)

    loading.ask_for(
        request,
        home,
        server_actions.REBUILD,
        recipe,
        memory,
        prepare=save_image if is_other_image else None,
        progress=0,
        **changes,
    )
    return _answer(request, server_id, changes["admin_password"])


def _image(request: ApiRequest, reference: str) -> ImageMeta:
    image_id = reference.rstrip("/").rpartition("/")[2]
    if not is_uuid(image_id):
        raise errors.BadRequest("Invalid imageRef provided.")
    try:
        image = request.services.images.show(request.context, image_id)
    except errors.ImageNotFound as missing:
        raise errors.BadRequest("Cannot find image for rebuild") from missing
    if image.status != "active":
        raise errors.BadRequest(f"Image {image_id} is not active.")
    return image


def _check_image(request: ApiRequest, home: Home, image: ImageMeta, present: list[BlockDevice]) -> None:
    instance, volume_backed = home.instance, is_volume_backed(present)
    flavors_and_images.check_hardware(request, instance.flavor, image)
    flavors_and_images.check_fits(instance.flavor, image, volume_backed=volume_backed)
    if image_devices.has_root(image):
        raise errors.BadRequest(f"Image {image.id} is unacceptable: it has no data, but names the volumes of a server.")
    if not volume_backed:
        flavors_and_images.check_bootable(request, image)
        return
    root = next(device for device in present if device.is_root)
    volume = request.services.volumes.show(request.context, str(root.volume_id))
    if request.version >= (2, 93):
        _check_volume(volume, image)
    elif image.id != volume.image_metadata.get("image_id", instance.image_meta.id if instance.image_meta else ""):
        # A rebuild does not write to the volume, so the image can't change.
        raise errors.BadRequest(_DIFFERENT_IMAGE)


def _check_volume(volume: Volume, image: ImageMeta) -> None:
    """Raises BadRequest if the image can't be written to the volume. A rebuild that failed may have left it reserved."""
    if volume.status not in ("in-use", "reserved"):
        raise errors.BadRequest(
            f"Invalid volume: volume {volume.id} status must be 'in-use' to be rebuilt, but the current status is"
            f" {volume.status}."
        )
    if volume.multiattach:
        raise errors.BadRequest(
            f"Invalid volume: other servers may have volume {volume.id}, which would be overwritten."
        )
    if image.min_disk > volume.size:
        raise errors.BadRequest(
            f"Volume is smaller than the minimum size specified in image metadata. Volume size is {volume.size} GiB, "
            f"minimum size is {image.min_disk} GiB."
        )


def _changes(request: ApiRequest, home: Home, wanted: dict[str, Any]) -> dict[str, Any]:
    names = {
        "name": "display_name",
        "description": "display_description",
        "hostname": "hostname",
        "user_data": "user_data",
        "trusted_image_certificates": "trusted_image_certificates",
    }
    changes = {field: wanted[key] for key, field in names.items() if key in wanted}
    changes["admin_password"] = passwords.chosen(request, wanted)
    changes |= access_addresses.changes(wanted)
    if "OS-DCF:diskConfig" in wanted:
        changes["auto_disk_config"] = wanted["OS-DCF:diskConfig"] == "AUTO"
    if "metadata" in wanted:
        metadata.check_quota(request, home.instance.project_id, wanted["metadata"])
        holds.check(request, home.instance.project_id, home.instance.metadata, wanted["metadata"])
        changes["metadata"] = dict(wanted["metadata"])
    if "personality" in wanted:
        changes["injected_files"] = create.personality(request, wanted)
    if "key_name" in wanted:
        changes |= _key(request, home, wanted["key_name"])
    return changes


def _key(request: ApiRequest, home: Home, name: str | None) -> dict[str, Any]:
    """The changes for the owner's key pair of that name; null removes the key. Raises BadRequest."""
    if name is None:
        return {"key_name": None, "keypairs": []}
    try:
        found = keypairs.get(request.services.api, home.instance.user_id, name)
    except errors.KeyPairNotFound as missing:
        raise errors.BadRequest("Invalid key_name provided.") from missing
    return {"key_name": name, "keypairs": [found]}


def _answer(request: ApiRequest, server_id: str, password: str) -> Response:
    view = ServerView(request)
    found = listing.get_server(request.services.cells, server_id, volumes=True, group=view.minor >= WITH_GROUPS)
    if request.version >= (2, 75):
        shown = show.whole(request, view, found)
        # A rebuild answers it as ``user_data``.
        shown.pop("OS-EXT-SRV-ATTR:user_data", None)
    else:
        extras = Extras()
        if view.minor >= WITH_GROUPS:
            extras.groups = [found.group] if found.group else []
        shown = view.detail(found, extras, whole=False)
    if request.version >= (2, 54):
        shown["key_name"] = found.values["key_name"]
    if request.version >= (2, 57):
        shown["user_data"] = found.values["user_data"]
    shown |= passwords.shown(request, password)
    return Response(202, {"server": shown}, {"Location": request.self_url(f"/servers/{server_id}")})
