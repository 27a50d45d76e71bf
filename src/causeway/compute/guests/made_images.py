"""Images of servers that are made where the image service keeps its own: nothing is uploaded.

The image service does not know of the data at first, so whoever dies before it does would leave data that nobody deletes.
Before there is any, a note says where it will be::

    MADE/IMAGE      where the image service keeps the server's image, beside which IMAGE is made (JSON: locations)

What a note is of is deleted when the host starts, or makes the image again, unless the image service has it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from causeway import durable, errors
from causeway.clients.rights import SERVICE
from causeway.compute.disks.foreign_names import checked
from causeway.compute.host import Host
from causeway.context import RequestContext, admin_context
from causeway.faults import injector
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.virt.driver import ROOT_DISK, StoredImage

LOG = logging.getLogger(__name__)

_MOST_LOCATIONS = 20
_DECODER = msgspec.json.Decoder(list[str])
# Seconds for the image service to look at the data, and between two looks.
_ACCEPTED_SECONDS, _LOOK_EVERY = 120.0, 0.5
# Glance sets this property while it works on an image.
_AT_WORK = "os_glance_import_task"


def make(
    host: Host, context: RequestContext, instance: Instance, image_id: str, *, power_off: bool = False
) -> int | None:
    """Makes an image, whose record there is and says raw, of the root disk as it is at one instant.

    The guest continues to run unless ``power_off``. Returns the image's size in bytes; None: it has to be uploaded. It may be
    there from an earlier attempt.
    """
    if not host.driver.stores_images():
        return None
    note = _notes(host) / checked(image_id)
    present = host.images.show_of_server(context, image_id)
    if present.status == "active":
        return present.size
    if _settle(host, note):
        raise _unsaid(image_id)
    locations = _locations(host, context, instance)
    if not locations:
        return None
    durable.make_folder(note.parent)
    durable.write(note, msgspec.json.encode(locations))
    try:
        stored = _stored(host, instance, image_id, locations, power_off=power_off)
        injector.reach("image.stored")
        is_accepted = stored is not None and _accepted(host, context, image_id, stored)
    finally:
        _settle(host, note)
    return stored.virtual_size if stored is not None and is_accepted else None


def delete_unfinished(host: Host) -> None:
    """Deletes what an earlier process has made, and the image service does not have. When the host starts."""
    for note in sorted(_notes(host).glob("[!.]*")):
        try:
            _settle(host, note)
        except errors.CausewayError as failure:
            LOG.warning("Data of image %s may be left: %s %s", note.name, failure.message, failure.details)


def _locations(host: Host, context: RequestContext, instance: Instance) -> list[str]:
    """Where the server's own image is: the image service keeps others there, too."""
    if not instance.image_ref:
        return []
    try:
        return host.images.locations(context, instance.image_ref)[:_MOST_LOCATIONS]
    except errors.CausewayError as failure:
        LOG.info("Where image %s is kept is not known: %s", instance.image_ref, failure.message)
        return []


def _stored(
    host: Host, instance: Instance, image_id: str, locations: list[str], *, power_off: bool
) -> StoredImage | None:
    with host.lock(instance.uuid):
        if power_off:
            host.driver.power_off(instance.uuid, host.shutdown_timeout(instance))
        for location in locations:
            stored = host.driver.store_image(instance, ROOT_DISK, image_id, location)
            if stored is not None:
                return stored
    return None


def _accepted(host: Host, context: RequestContext, image_id: str, stored: StoredImage) -> bool:
    """Whether the image service has made the data that of the image. Raises DiskTransferBroken if it does not say."""
    try:
        host.images.add_location(context, image_id, stored.location)
    except (errors.Forbidden, errors.NotFound, errors.ServiceRefused) as refusal:
        LOG.info("Image %s is uploaded: %s %s", image_id, refusal.message, refusal.details)
        return False
    end = time.monotonic() + _ACCEPTED_SECONDS
    while _is_at_work(image := host.images.show_of_server(context, image_id)):
        if time.monotonic() >= end or host.stopping.wait(_LOOK_EVERY):
            raise _unsaid(image_id)
    return image.status == "active"


def _unsaid(image_id: str) -> errors.DiskTransferBroken:
    return errors.DiskTransferBroken(
        "The image service does not say whether it accepts an image.", details=f"image {image_id}"
    )


def _settle(host: Host, note: Path) -> bool:
    """Deletes the data that a note is of, unless the image service has it. Returns True if that is not known yet."""
    locations = durable.read(note, _DECODER.decode)
    if locations is None:
        return False
    try:
        image: ImageMeta | None = host.images.show_of_server(admin_context(), note.name, called_as=SERVICE)
    except errors.ImageNotFound:
        image = None
    if image is not None and _is_at_work(image):
        return True
    if image is None or image.status == "queued":
        for location in locations:
            host.driver.delete_stored_image(note.name, location)
    durable.delete(note)
    return False


def _is_at_work(image: ImageMeta) -> bool:
    return image.status in ("importing", "saving") or (image.status == "queued" and _AT_WORK in image.properties)


def _notes(host: Host) -> Path:
    return host.image_cache.directory.with_name("_made")
