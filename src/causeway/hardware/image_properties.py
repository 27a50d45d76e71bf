"""Checks the values of image properties that a hypervisor uses. The allowed values are Nova's.

Source: Glance, "Useful image properties"; Compute, "ImageMetaProps". Flags are not checked: what does not mean yes means no.
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.model.image import ImageMeta

_BUSES = frozenset({"fdc", "ide", "lxc", "sata", "scsi", "uml", "usb", "virtio", "xen"})

# Name -> the values that it may have.
_WORDS: dict[str, frozenset[str]] = {
    "hw_cdrom_bus": _BUSES,
    "hw_disk_bus": _BUSES,
    "hw_firmware_type": frozenset({"bios", "uefi"}),
    "hw_floppy_bus": _BUSES,
    "hw_input_bus": frozenset({"usb", "virtio"}),
    "hw_maxphysaddr_mode": frozenset({"emulate", "passthrough"}),
    "hw_mem_encryption_model": frozenset({"amd-sev", "amd-sev-es"}),
    "hw_pointer_model": frozenset({"usbtablet"}),
    "hw_rng_model": frozenset({"virtio"}),
    "hw_scsi_model": frozenset(
        [
            "buslogic",
            "ibmvscsi",
            "lsilogic",
            "lsisas1068",
            "lsisas1078",
            "lsilogicsas",
            "paravirtual",
            "virtio-scsi",
            "vmpvscsi",
        ]
    ),
    "hw_tpm_model": frozenset({"tpm-crb", "tpm-tis"}),
    "hw_tpm_version": frozenset({"1.2", "2.0"}),
    "hw_video_model": frozenset(["bochs", "cirrus", "gop", "none", "qxl", "vga", "virtio", "vmvga", "xen"]),
    "hw_vif_model": frozenset(
        [
            "e1000",
            "e1000e",
            "igb",
            "lan9118",
            "ne2k_pci",
            "netfront",
            "pcnet",
            "rtl8139",
            "spapr-vlan",
            "sriov",
            "virtio",
            "vmxnet",
            "vmxnet3",
            "virtuale1000",
            "virtuale1000e",
            "virtualpcnet32",
            "virtualsriovethernetcard",
            "virtualvmxnet",
            "virtualvmxnet3",
        ]
    ),
    "hw_viommu_model": frozenset({"auto", "intel", "smmuv3", "virtio"}),
    "hw_watchdog_action": frozenset({"disabled", "none", "pause", "poweroff", "reset"}),
    "os_secure_boot": frozenset({"disabled", "optional", "required"}),
    "os_type": frozenset({"linux", "windows"}),
}
# Nova takes these in any case.
_ANY_CASE = frozenset({"hw_scsi_model", "hw_vif_model", "os_type"})
_NUMBERS = frozenset(
    [
        "hw_cpu_cores",
        "hw_cpu_max_cores",
        "hw_cpu_max_sockets",
        "hw_cpu_max_threads",
        "hw_cpu_sockets",
        "hw_cpu_threads",
        "hw_device_id",
        "hw_maxphysaddr_bits",
        "hw_numa_nodes",
        "hw_serial_port_count",
        "hw_video_ram",
        "img_compression_level",
        "img_version",
    ]
)


def check(image: ImageMeta | None) -> None:
    """Raises BadRequest with Nova's message for a value that is not allowed."""
    for name, value in (image.properties if image is not None else {}).items():
        if name in _WORDS and _plain(name, value) not in _WORDS[name]:
            raise _invalid(f"Field value {str(value)[:64]} is invalid")
        if name in _NUMBERS:
            try:
                int(value)
            except (TypeError, ValueError):
                raise _invalid(f"invalid literal for int() with base 10: {str(value)[:64]!r}") from None


def _plain(name: str, value: Any) -> str:
    return str(value).lower() if name in _ANY_CASE else str(value)


def _invalid(why: str) -> errors.BadRequest:
    return errors.BadRequest(f"Invalid image metadata. Error: {why}")
