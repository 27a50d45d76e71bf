"""What the root disk of a guest is made from: the image where the image service keeps it, or its file on this host.

Nothing of an image has to be on the host if the image service keeps it, raw, in storage that the driver reaches: the disk is then
cloned from there. Whatever speaks against that, the image is downloaded.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.image import RAW
from causeway.virt import image_formats
from causeway.virt.driver import Progress, RootDisk, StoredImage, no_progress

LOG = logging.getLogger(__name__)

# An image has a location in each store of the image service.
_MOST_LOCATIONS = 20


def root_disk_of(
    host: Host, context: RequestContext, image_id: str, size_gb: int, progress: Progress = no_progress
) -> RootDisk:
    """A root disk of ``size_gb`` GiB (0: as large as the image) on an image. Downloads the image if it must.

    Raises what `ImageCache.fetch` raises.
    """
    stored = find_stored(host, context, image_id, size_gb)
    if stored is not None:
        return RootDisk(base=None, base_image_id=image_id, size_gb=size_gb, stored_image=stored)
    base = host.image_cache.fetch(context, image_id, progress, most_gb=size_gb)
    return RootDisk(base=base, base_image_id=image_id, size_gb=size_gb)


def find_stored(host: Host, context: RequestContext, image_id: str, size_gb: int) -> StoredImage | None:
    """The image in storage that this host reaches; None: it has to be downloaded.

    Raises `ImageRefused` if it is larger than a disk of ``size_gb`` GiB may be.
    """
    if host.driver.storage() is None or RAW not in host.image_cache.allowed:
        return None
    try:
        image = host.images.show_of_server(context, image_id)
        # The bytes of another format are no disk, and only an active image is given away.
        if image.disk_format != RAW or image.status != "active" or image.misfit(host.image_cache.allowed) is not None:
            return None
        locations = host.images.locations(context, image_id)
    except errors.CausewayError as failure:
        # A download says it better, or does not need to know.
        LOG.info("Where image %s is kept is not known: %s %s", image_id, failure.message, failure.details)
        return None
    for location in locations[:_MOST_LOCATIONS]:
        stored = host.driver.stored_image(location)
        if stored is not None:
            most = host.image_cache.most_bytes(size_gb)
            image_formats.check_size(f"Image {image_id}", stored.virtual_size, most)
            return stored
    return None
