"""Small devices of a guest, by flavor and image: screen, network cards, disk buses, random numbers, watchdog, pointer.

`check` refuses contradictions. `devices_of` ignores values that it can't use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oslo_utils import strutils

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta

# Name of a card in old images -> Nova's name.
_OLD_CARDS = {
    "virtuale1000": "e1000",
    "virtuale1000e": "e1000e",
    "virtualpcnet32": "pcnet",
    "virtualsriovethernetcard": "sriov",
    "virtualvmxnet": "vmxnet",
    "virtualvmxnet3": "vmxnet3",
}
_OLD_CONTROLLERS = {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"}


@dataclass(frozen=True)
class GuestDevices:
    """None and 0: the hypervisor's default, or no such device. Memory in MiB; ``rng_period`` in milliseconds."""

    video_model: str | None = None
    video_ram: int = 0
    vif_model: str | None = None
    #: each card has as many queues as the guest has processors
    has_queues: bool = False
    disk_bus: str | None = None
    cdrom_bus: str | None = None
    scsi_model: str | None = None
    has_rng: bool = True
    rng_bytes: int = 0
    rng_period: int = 0
    watchdog_action: str | None = None
    #: the bus of a tablet, which is a pointer with absolute positions
    tablet_bus: str | None = None
    boot_menu: bool = False
    #: the host never swaps the guest's memory out
    locked_memory: bool = False

    def queues(self, vcpus: int) -> int:
        """How many queues each network card of a guest with so many processors has."""
        return vcpus if self.has_queues and self.vif_model in (None, "virtio") else 1


def devices_of(flavor: Flavor, image: ImageMeta | None) -> GuestDevices:
    specs = flavor.extra_specs
    properties: dict[str, Any] = image.properties if image is not None else {}

    def of_image(name: str) -> str | None:
        value = properties.get(name)
        return None if value is None else str(value)

    def flag(spec: str, name: str) -> bool:
        return _truth(specs.get(spec)) or _truth(properties.get(name))

    card, controller = (of_image("hw_vif_model") or "").lower(), (of_image("hw_scsi_model") or "").lower()
    action = of_image("hw_watchdog_action") or specs.get("hw:watchdog_action")
    has_rng = _truth(specs.get("hw_rng:allowed", "true"))
    pointer = of_image("hw_input_bus") or specs.get("hw:input_bus")
    if pointer is None and of_image("hw_pointer_model") == "usbtablet":
        pointer = "usb"
    return GuestDevices(
        video_model=of_image("hw_video_model"),
        video_ram=_number(properties.get("hw_video_ram")),
        vif_model=_OLD_CARDS.get(card, card) or None,
        has_queues=flag("hw:vif_multiqueue_enabled", "hw_vif_multiqueue_enabled"),
        disk_bus=of_image("hw_disk_bus"),
        cdrom_bus=of_image("hw_cdrom_bus"),
        scsi_model=_OLD_CONTROLLERS.get(controller, controller) or None,
        has_rng=has_rng,
        rng_bytes=_number(specs.get("hw_rng:rate_bytes")) if has_rng else 0,
        rng_period=_number(specs.get("hw_rng:rate_period")) if has_rng else 0,
        watchdog_action=None if action in (None, "disabled") else str(action),
        tablet_bus=pointer if pointer in ("usb", "virtio") else None,
        boot_menu=flag("hw:boot_menu", "hw_boot_menu"),
        locked_memory=flag("hw:locked_memory", "hw_locked_memory"),
    )


def check(flavor: Flavor, image: ImageMeta | None) -> None:
    """Raises BadRequest for values that contradict each other or are not available, with Nova's message if it has one."""
    specs = flavor.extra_specs
    properties: dict[str, Any] = image.properties if image is not None else {}
    wanted, most = _number(properties.get("hw_video_ram")), _number(specs.get("hw_video:ram_max_mb"))
    if wanted > most:
        raise errors.BadRequest(
            f"The requested amount of video memory {wanted} is higher than the maximum allowed by flavor {most}."
        )
    ports, of_image = specs.get("hw:serial_port_count"), properties.get("hw_serial_port_count")
    if ports is not None and of_image is not None and _number(of_image) > _number(ports):
        raise errors.BadRequest("Forbidden to exceed flavor value of number of serial ports passed in image meta.")
    for setting in ("locked_memory", "vif_multiqueue_enabled"):
        spec, value = specs.get(f"hw:{setting}"), properties.get(f"hw_{setting}")
        if spec is not None and value is not None and _truth(spec) is not _truth(value):
            raise errors.BadRequest(
                f"Conflicting values for hw_{setting} found in the flavor ({spec}) and the image ({value})."
            )
    is_locked = _truth(specs.get("hw:locked_memory")) or _truth(properties.get("hw_locked_memory"))
    if is_locked and specs.get("hw:mem_page_size") is None and properties.get("hw_mem_page_size") is None:
        raise errors.BadRequest("locked_memory value in image or flavor is forbidden when mem_page_size is not set.")
    if _truth(specs.get("hw:mem_encryption")) or _truth(properties.get("hw_mem_encryption")):
        raise errors.BadRequest(
            "Memory encryption is requested, but no hypervisor of this cloud encrypts the memory of guests."
        )


def _truth(value: Any) -> bool:
    return bool(strutils.bool_from_string(value, default=False))


def _number(value: Any) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError):
        return 0
