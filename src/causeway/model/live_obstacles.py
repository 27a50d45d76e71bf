"""What no hypervisor can migrate live."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta

# A flavor's extra spec, or an image's property -> the description of the server.
_NOT_MOVABLE = {
    "accel:device_profile": "instance with accelerators",
    "hw:mem_encryption": "SEV-enabled instance",
    "hw_mem_encryption": "SEV-enabled instance",
}
_ACCELERATED_PORTS = ("accelerator-direct", "accelerator-direct-physical", "vdpa")
# Ports that are a device of the host, which stays there.
_PORTS_WITH_DEVICES = ("direct", "direct-physical", "macvtap", "remote-managed", "virtio-forwarder")


def live_obstacle(flavor: Flavor, image: ImageMeta | None, vnic_types: Iterable[str]) -> str | None:
    """Why a server can't be migrated live, as a description of the server; None if it can."""
    properties = image.properties if image is not None else {}
    for name, what in _NOT_MOVABLE.items():
        value = flavor.extra_specs.get(name, properties.get(name))
        if value is not None and str(value).lower() not in ("false", "0", "no", "off"):
            return what
    present = set(vnic_types)
    if present.intersection(_ACCELERATED_PORTS):
        return "instance with ports that have accelerators"
    if present.intersection(_PORTS_WITH_DEVICES):
        return "instance with SR-IOV ports"
    return None
