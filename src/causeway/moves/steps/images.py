"""The temporary images of a move: one for each local disk that goes through the image service."""

from __future__ import annotations

import uuid as uuids

from causeway.model.block_device import local_disk_names
from causeway.moves.run import Run


def image_id_of(run: Run, disk: str | None = None) -> str:
    """A temporary image's id follows from the move's: it is found again without having been written down.

    ``disk``: the name of an ephemeral disk; None: the root disk.
    """
    return str(uuids.uuid5(uuids.UUID(run.move.id), "resize-temp" if disk is None else f"resize-temp {disk}"))


def image_ids_of(run: Run) -> list[str]:
    """Every temporary image that the move may have made."""
    return [image_id_of(run), *(image_id_of(run, disk) for disk in _ephemeral_disks(run))]


def make_images(run: Run) -> None:
    """Makes the records of the images and notes them: root disk (if it is local) and ephemeral disks."""
    memory = run.memory
    if not memory.volume_backed:
        memory.image_id = _make(run, image_id_of(run), "resize-temp")
    memory.disk_image_ids = {
        disk: _make(run, image_id_of(run, disk), f"{disk}-resize-temp") for disk in _ephemeral_disks(run)
    }


def delete_images(run: Run) -> None:
    """After the move has used them."""
    memory = run.memory
    for image_id in (memory.image_id, *memory.disk_image_ids.values()):
        if image_id is not None:
            run.services.images.delete(run.context, image_id)


def _ephemeral_disks(run: Run) -> list[str]:
    # Swap is made anew.
    return [name for name, device in local_disk_names(run.memory.local_devices) if device.is_ephemeral]


def _make(run: Run, image_id: str, suffix: str) -> str:
    """The record of a temporary image; the name and properties of the root disk's are the field's."""
    instance = run.source_instance()
    meta = instance.image_meta
    owned = instance.project_id == run.context.project_id
    properties = {
        "instance_uuid": instance.uuid,
        "user_id": run.context.user_id or instance.user_id,
        "image_type": "snapshot",
        "migration_uuid": run.move.migration_uuid,
    }
    if not owned:
        properties["instance_owner"] = instance.project_id
    run.services.images.create(
        run.context,
        image_id=image_id,
        name=f"{instance.display_name}-{suffix}",
        properties=properties,
        visibility="private" if owned else "shared",
        disk_format="qcow2",
        container_format="bare",
        min_disk=meta.min_disk if meta else 0,
        min_ram=meta.min_ram if meta else 0,
    )
    if not owned:
        run.services.images.add_member(run.context, image_id, instance.project_id)
    return image_id
