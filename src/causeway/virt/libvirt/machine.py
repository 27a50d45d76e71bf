"""The machine type of a guest: what was recorded when it was first started, what its image says, or the host's default."""

from __future__ import annotations

from causeway.hardware.firmware import Firmware, SecureBoot
from causeway.model.instance import Instance
from causeway.model.machine_type import recorded

Q35 = "q35"


def machine_of(instance: Instance, firmware: Firmware, default: str) -> str:
    """Secure boot is only there with q35: who asks for it and for no machine type gets that."""
    properties = instance.image_meta.properties if instance.image_meta is not None else {}
    asked = recorded(instance.system_metadata) or properties.get("hw_machine_type")
    if asked:
        return str(asked)
    return Q35 if firmware.secure_boot is SecureBoot.REQUIRED else default


def is_q35(machine: str) -> bool:
    return Q35 in machine
