"""Flavors and images for create and resize: whether the caller may use them, and whether they fit together."""

from __future__ import annotations

import re

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.hardware import firmware, guest_devices, image_properties
from causeway.hardware.requests import asked_of
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.store.api import flavors

GIB = 1 << 30
# Names of machine types: a family, and often a version of it.
_MACHINE_TYPE = re.compile(r"(pc|q35|virt|microvm|pseries|powernv|s390-ccw-virtio|isapc)(-[a-z0-9._]+)*")


def flavor_for(request: ApiRequest, flavorid: str) -> Flavor:
    """A flavor by its id, or by a URL that ends with its id. Raises FlavorNotUsable.

    A private flavor of another project is refused like one that does not exist (bug 2151256).
    """
    flavorid = flavorid.rstrip("/").rpartition("/")[2]
    visible_to = None if request.context.is_admin else request.project_id
    try:
        return flavors.get(request.services.api, flavorid, project_id=visible_to)
    except errors.FlavorNotFound as missing:
        raise errors.FlavorNotUsable(missing.message) from missing


def check_hardware(request: ApiRequest, flavor: Flavor, image: ImageMeta | None) -> None:
    """Raises BadRequest if flavor and image contradict each other, or one contradicts itself, about the guest's hardware.

    A machine type that no hypervisor has is refused here and not later by a host (bug 1933097).
    """
    image_properties.check(image)
    machine_type = str(image.properties.get("hw_machine_type", "q35")) if image is not None else "q35"
    if not _MACHINE_TYPE.fullmatch(machine_type):
        raise errors.BadRequest(f"The provided machine type {machine_type[:64]!r} of the image is not supported.")
    firmware.check(flavor, image)
    guest_devices.check(flavor, image)
    asked_of(request.services.conf, flavor, image)


def check_bootable(request: ApiRequest, image: ImageMeta) -> None:
    """Raises BadRequest if no local disk can be made from the image, as its record says. Hosts look at the content."""
    misfit = image.misfit(request.services.conf.compute.allowed_image_formats)
    if misfit is not None:
        raise errors.BadRequest(f"Image {image.id} is unacceptable: {misfit}")


def check_fits(flavor: Flavor, image: ImageMeta, *, volume_backed: bool) -> None:
    """Raises FlavorNotUsable if the image needs more. Memory counts for volume-backed servers, too (bug 2007968)."""
    if image.min_ram > flavor.memory_mb:
        raise errors.FlavorNotUsable("Flavor's memory is too small for requested image.")
    if volume_backed or flavor.root_gb == 0:
        return
    if image.disk_bytes > flavor.root_gb * GIB:
        raise errors.FlavorNotUsable(
            f"Flavor's disk is too small for requested image. Flavor disk is {flavor.root_gb * GIB} bytes, "
            f"image is {image.disk_bytes} bytes."
        )
    if image.min_disk > flavor.root_gb:
        raise errors.FlavorNotUsable(
            "The size of flavor's disk is smaller than the minimum disk size specified in image metadata. Flavor disk is "
            f"{flavor.root_gb} GiB, minimum size is {image.min_disk} GiB."
        )
