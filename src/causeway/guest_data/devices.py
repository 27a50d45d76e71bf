"""The devices that ``meta_data.json`` lists: those that their user gave a tag."""

from __future__ import annotations

from typing import Any

from causeway.guest_data.facts import ServerFacts
from causeway.model.block_device import BlockDevice
from causeway.model.network import Vif


def devices(facts: ServerFacts) -> list[dict[str, Any]]:
    """Ports, then disks."""
    nics = [_nic(vif) for vif in facts.vifs if vif.tag]
    return nics + [_disk(device) for device in facts.block_devices if device.tag]


def _nic(vif: Vif) -> dict[str, Any]:
    return {"type": "nic", "mac": vif.address, "tags": [vif.tag]}


def _disk(device: BlockDevice) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "disk", "tags": [device.tag]}
    if device.device_name:
        found["path"] = device.device_name
    if device.volume_id:
        # What the guest sees of a volume.
        found["serial"] = device.volume_id
    return found
