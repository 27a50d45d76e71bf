"""Makes images of root disks where the image service keeps its own, if the host reaches that; else the host uploads them."""

from __future__ import annotations

import logging
from typing import TypeAlias, TypeVar

from causeway import errors
from causeway.model.host import STORES_IMAGES
from causeway.model.image import QCOW2, RAW
from causeway.running.operation_run import OperationRun
from causeway.store.cell import hosts

LOG = logging.getLogger(__name__)

MemoryT = TypeVar("MemoryT")
Run: TypeAlias = OperationRun[MemoryT]


def make(run: Run[MemoryT], step: str, host: str, image_id: str, *, power_off: bool) -> int | None:
    """Makes the image, whose record exists and says qcow2. Returns its size in bytes.

    ``power_off``: powers the guest off for it, so that the image has the final state of the disk.
    """
    instance, token = run.instance(), run.token(step)
    if _stores_images(run, host) and _said_to_be(RAW, run, image_id):
        stored = run.computes.store_image(
            run.context, host, token=token, instance=instance, image_id=image_id, power_off=power_off
        )
        if stored.bytes_done is not None:
            return stored.bytes_done
        run.services.images.set_properties(run.context, image_id, {"disk_format": QCOW2})
    uploaded = run.computes.upload_disk(
        run.context, host, token=token, instance=instance, image_id=image_id, power_off=power_off
    )
    return uploaded.bytes_done


def _stores_images(run: Run[MemoryT], host: str) -> bool:
    return any(node.capabilities.get(STORES_IMAGES) for node in hosts.list_nodes(run.database, host=host))


def _said_to_be(disk_format: str, run: Run[MemoryT], image_id: str) -> bool:
    """Sets the format of an image that has no data yet. Only its owner may: not we, when the user's token has expired."""
    try:
        run.services.images.set_properties(run.context, image_id, {"disk_format": disk_format})
    except (errors.Forbidden, errors.Unauthorized) as refusal:
        LOG.info("Image %s is uploaded: %s", image_id, refusal.message)
        return False
    return True
