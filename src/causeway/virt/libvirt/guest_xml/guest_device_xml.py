"""The small devices of a guest in its XML.

Source: libvirt, "Domain XML format": video devices, random number generator, watchdog, input devices.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from causeway.hardware.guest_devices import GuestDevices

_KIB_PER_MIB = 1024
# The only watchdog that all machine types with PCI have.
_WATCHDOG = "i6300esb"


def add_video(devices: ET.Element, wanted: GuestDevices, *, has_screen: bool) -> None:
    """Adds a video card. A guest without a screen has one only if it asks for one."""
    if not has_screen and wanted.video_model is None:
        return
    model = ET.SubElement(ET.SubElement(devices, "video"), "model", type=wanted.video_model or "vga")
    if wanted.video_ram and wanted.video_model != "none":
        model.set("vram", str(wanted.video_ram * _KIB_PER_MIB))


def add_others(devices: ET.Element, wanted: GuestDevices) -> None:
    """Adds the random number generator, the watchdog and the tablet that the guest wants."""
    if wanted.has_rng:
        rng = ET.SubElement(devices, "rng", model="virtio")
        if wanted.rng_bytes:
            rate = ET.SubElement(rng, "rate", bytes=str(wanted.rng_bytes))
            if wanted.rng_period:
                rate.set("period", str(wanted.rng_period))
        ET.SubElement(rng, "backend", model="random").text = "/dev/urandom"
    if wanted.watchdog_action is not None:
        ET.SubElement(devices, "watchdog", model=_WATCHDOG, action=wanted.watchdog_action)
    if wanted.tablet_bus is not None:
        ET.SubElement(devices, "input", type="tablet", bus=wanted.tablet_bus)
