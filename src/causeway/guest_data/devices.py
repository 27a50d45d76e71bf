"""Makes the list of devices in ``meta_data.json``: those to which the user gave a tag."""

from __future__ import annotations

from typing import Any

from causeway.guest_data.facts import ServerFacts
from causeway.model.block_device import BlockDevice
from causeway.model.network import Vif


def devices(facts: ServerFacts) -> list[dict[str, Any]]:
    """Returns the tagged ports, then the tagged disks."""
    nics = [_nic(vif) for vif in facts.vifs if vif.tag]
    return nics + [_disk(device) for device in facts.block_devices if device.tag]


def _nic(vif: Vif) -> dict[str, Any]:
    return {"type": "nic", "mac": vif.address, "tags": [vif.tag]}


def _disk(device: BlockDevice) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "disk", "tags": [device.tag]}
    if device.device_name:
        found["path"] = device.device_name
    if device.volume_id:
        # The guest sees the volume's id as the disk's serial number.
        found["serial"] = device.volume_id
    return found
