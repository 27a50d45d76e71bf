"""The machine type of a guest: as recorded at its first start, or as its image says, or the host's default."""

from __future__ import annotations

from causeway.errors import Misconfigured
from causeway.hardware.firmware import Firmware, SecureBoot
from causeway.model.instance import Instance
from causeway.model.machine_type import recorded

Q35 = "q35"


def machine_of(instance: Instance, firmware: Firmware, default: str) -> str:
    """The machine type of a server's guest. Secure boot works only with q35, so whoever asks for it alone gets q35."""
    properties = instance.image_meta.properties if instance.image_meta is not None else {}
    asked = recorded(instance.system_metadata) or properties.get("hw_machine_type")
    if asked:
        return str(asked)
    return Q35 if firmware.secure_boot is SecureBoot.REQUIRED else default


def default_machine(configured: list[str]) -> str:
    """The machine type for x86_64 in ``[libvirt] hw_machine_type``. Raises `Misconfigured` for an entry of another form."""
    found = "pc"
    for entry in configured:
        architecture, mark, machine = entry.partition("=")
        if not mark or not machine:
            raise Misconfigured(f"[libvirt] hw_machine_type: {entry!r} is not architecture=machine type.")
        if architecture.strip() == "x86_64":
            found = machine.strip()
    return found


def is_q35(machine: str) -> bool:
    return Q35 in machine
