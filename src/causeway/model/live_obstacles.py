"""What no hypervisor can migrate live."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.states import VmState

# A flavor's extra spec, or an image's property -> the description of the server.
_NOT_MOVABLE = {
    "accel:device_profile": "instance with accelerators",
    "hw:mem_encryption": "SEV-enabled instance",
    "hw_mem_encryption": "SEV-enabled instance",
}
# Ports that are a device of the host. These are detached while the guest's memory travels, and attached at its target.
DETACHED_LIVE = frozenset({"direct", "macvtap", "vdpa"})
_ACCELERATORS, _DEVICES = "accelerators", "devices that can't be detached from a running guest"
# The others stay: a whole card has a MAC address of its own, and nobody has tried cards that plug their ports themselves.
_PORTS_THAT_STAY = {
    "accelerator-direct": _ACCELERATORS,
    "accelerator-direct-physical": _ACCELERATORS,
    "direct-physical": _DEVICES,
    "remote-managed": _DEVICES,
    "virtio-forwarder": _DEVICES,
}


def live_obstacle(
    flavor: Flavor, image: ImageMeta | None, vnic_types: Iterable[str], vm_state: VmState | None = None
) -> str | None:
    """Why a server can't be migrated live, as a description of the server; None if it can."""
    properties = image.properties if image is not None else {}
    for name, what in _NOT_MOVABLE.items():
        value = flavor.extra_specs.get(name, properties.get(name))
        if value is not None and str(value).lower() not in ("false", "0", "no", "off"):
            return what
    return _obstacle_of_ports(set(vnic_types), vm_state)


def _obstacle_of_ports(present: Collection[str], vm_state: VmState | None) -> str | None:
    if not DETACHED_LIVE.isdisjoint(present) and vm_state in (VmState.PAUSED, VmState.SUSPENDED):
        return f"{vm_state} instance with SR-IOV ports, which a guest releases only while it runs"
    for name, what in _PORTS_THAT_STAY.items():
        if name in present:
            return f"instance with ports that have {what} ({name})"
    return None
