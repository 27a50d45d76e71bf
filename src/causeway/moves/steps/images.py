"""The temporary images of a move: one for each local disk that goes through the image service, and one for saved memory."""

from __future__ import annotations

import uuid as uuids
from contextlib import suppress

from causeway import errors
from causeway.clients.rights import SERVICE
from causeway.model.block_device import local_disk_names
from causeway.moves.move_run import Run
from causeway.virt.driver import KEPT_STATE, MEMORY, ROOT_DISK

# The key of the server's system metadata for images of its disks that a move did not delete because the disks' host is dead.
# They are deleted with the server.
KEPT = "kept_copies"

# The states of an image that takes data, or has all of its data.
_USABLE = ("queued", "active")
# The states of an image without a whole disk. If the sending host is dead, it never gets one.
_INCOMPLETE = ("queued", "saving")


def image_id_of(run: Run, disk: str | None = None, image_round: int = 0) -> str:
    """Returns the id of a temporary image, computed from the move's id, so that no record of it is needed.

    ``disk``: the name of another disk, or of the guest's memory; None for the root disk. ``image_round``: how often the move has
    replaced its images.
    """
    words = ["resize-temp", *([disk] if disk is not None else []), *([str(image_round)] if image_round else [])]
    return str(uuids.uuid5(uuids.UUID(run.move.id), " ".join(words)))


def image_ids_of(run: Run) -> list[str]:
    """Returns all temporary images that the move may have made, including those that an interrupted attempt did not record."""
    if not run.memory.is_cross_cell:
        # Inside a cell, disks go from host to host.
        return []
    return [
        image_id_of(run, disk, image_round)
        for image_round in range(run.memory.image_round + 2)
        for disk in (None, *_names(run))
    ]


def parts_of(run: Run) -> list[str]:
    """Returns the images for parts of disks that the rounds of `CopyWhileRunning` may not have deleted."""
    return run.memory.warm.image_ids if run.memory.warm is not None else []


def make_images(run: Run) -> None:
    """Makes the records of the images for the root disk (if it is local) and the other disks, and notes their ids.

    An image whose upload the image service broke off takes no more data. If there is one, makes all images anew, with other ids.
    `delete_images` deletes the former ones too; not before, because an upload into them may still be running.
    """
    memory = run.memory
    while not _make_round(run):
        memory.image_round += 1


def note_images(run: Run) -> None:
    """Notes the images that `make_images` makes."""
    memory = run.memory
    if not memory.volume_backed and ROOT_DISK not in memory.shared:
        memory.image_id = image_id_of(run, None, memory.image_round)
    memory.disk_image_ids = {disk: image_id_of(run, disk, memory.image_round) for disk in _names(run)}


def _make_round(run: Run) -> bool:
    """Makes the images of the present ``image_round``. Returns whether all of them take data."""
    note_images(run)
    memory = run.memory
    # Changes since the last round are not an image of a disk, so their format is raw.
    disk_format = "qcow2" if memory.received_round is None else "raw"
    usable = memory.image_id is None or make_image(run, memory.image_id, "resize-temp", disk_format)
    return usable and all(
        make_image(run, image_id, f"{disk}-resize-temp", "raw" if disk in (KEPT_STATE, MEMORY) else disk_format)
        for disk, image_id in memory.disk_image_ids.items()
    )


def delete_images(run: Run) -> None:
    """Deletes the images after the move has used them."""
    memory = run.memory
    used = [image_id for image_id in (memory.image_id, *memory.disk_image_ids.values()) if image_id is not None]
    # The images were made because the target could not fetch the offer, but then it fetched it after all.
    is_unsure = bool(used) and memory.offer is not None
    for image_id in image_ids_of(run) if memory.image_round or is_unsure else used:
        run.services.images.delete(run.context, image_id, called_as=SERVICE)


def delete_incomplete_images(run: Run) -> list[str]:
    """Deletes the images without a whole disk. Returns the complete images, which may be the only copies of the disks."""
    images, complete = run.services.images, []
    for image_id in image_ids_of(run):
        with suppress(errors.ImageNotFound):
            if images.show_of_server(run.context, image_id, called_as=SERVICE).status in _INCOMPLETE:
                images.delete(run.context, image_id, called_as=SERVICE)
            else:
                complete.append(image_id)
    return complete


def disks_beside_root(run: Run) -> list[str]:
    """Returns the names of the local disks other than the root disk that travel. Swap travels only with the guest's memory."""
    memory = run.memory
    return [
        name
        for name, device in local_disk_names(memory.local_devices)
        if (device.is_ephemeral or memory.keeps_memory) and name not in memory.shared
    ]


def _names(run: Run) -> list[str]:
    """Returns the names of everything but the root disk that travels, including state of firmware and TPM, and memory."""
    memory = run.memory
    firmware = [KEPT_STATE] if memory.carries_firmware else []
    return [*disks_beside_root(run), *firmware, *([MEMORY] if memory.keeps_memory else [])]


def make_image(run: Run, image_id: str, suffix: str, disk_format: str = "qcow2") -> bool:
    """Makes the record of a temporary image. Returns whether the image takes data.

    It belongs to our own project: whoever could write into it would decide what the target runs.

    ``suffix``: the end of the image's name, which is Nova's name for the root disk.
    """
    instance = run.source_instance()
    meta = instance.image_meta
    made = run.services.images.create(
        run.context,
        image_id=image_id,
        name=f"{instance.display_name}-{suffix}",
        properties={
            "instance_uuid": instance.uuid,
            "instance_owner": instance.project_id,
            "user_id": run.context.user_id or instance.user_id,
            "image_type": "snapshot",
            "migration_uuid": run.move.migration_uuid,
        },
        disk_format=disk_format,
        container_format="bare",
        min_disk=meta.min_disk if meta else 0,
        min_ram=meta.min_ram if meta else 0,
        called_as=SERVICE,
    )
    return made.status in _USABLE
