"""Makes the tree under ``ec2/``, which guests also read without that prefix.

A node is a dict (a folder), a list of lines, or a value. In lists, a folder that has a ``_name`` appears under that name.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from causeway.guest_data.facts import ServerFacts

Node = dict[str, Any] | list[str] | str | bytes | int
NAME = "_name"


def tree(facts: ServerFacts, version: str) -> dict[str, Any]:
    """Returns the tree of a version. Ids are the uuid as a number with Nova's prefixes, so moves don't change them."""
    found: dict[str, Any] = {"meta-data": meta_data(facts, version)}
    if facts.user_data is not None:
        found["user-data"] = facts.user_data
    return found


def meta_data(facts: ServerFacts, version: str) -> dict[str, Any]:
    instance = facts.instance
    document: dict[str, Any] = {
        "ami-id": _ec2_id("ami", instance.image_ref),
        "ami-launch-index": instance.launch_index,
        "ami-manifest-path": "FIXME",
        "instance-id": _ec2_id("i", instance.uuid),
        "hostname": facts.hostname,
        "local-ipv4": facts.address(4),
        "reservation-id": instance.reservation_id,
        "security-groups": facts.security_groups,
    }
    if instance.keypairs:
        document["public-keys"] = {
            str(place): {NAME: f"{place}={pair.name}", "openssh-key": pair.public_key}
            for place, pair in enumerate(instance.keypairs)
        }
    if version >= "2007-01-19":
        document |= {
            "local-hostname": facts.hostname,
            "public-hostname": facts.hostname,
            "public-ipv4": facts.floating_ip,
        }
    if version >= "2007-08-29":
        document["instance-type"] = instance.flavor.name
    if version >= "2007-12-15":
        document["block-device-mapping"] = _block_device_mapping(facts)
        if instance.kernel_id:
            document["kernel-id"] = _ec2_id("aki", instance.kernel_id)
        if instance.ramdisk_id:
            document["ramdisk-id"] = _ec2_id("ari", instance.ramdisk_id)
    if version >= "2008-02-01":
        document["placement"] = {"availability-zone": instance.availability_zone or ""}
    if version >= "2008-09-01":
        document["instance-action"] = "none"
    return document


def find(node: Node, path: list[str]) -> Node | None:
    """Returns the node at a path below ``node``; None if there is none."""
    for part in path:
        if not isinstance(node, dict) or part == NAME or part not in node:
            return None
        node = node[part]
    return node


def shown(node: Node) -> bytes:
    """Returns a node as guests get it. A folder is a list of its names."""
    if isinstance(node, dict):
        return "\n".join(_listed(name, node[name]) for name in sorted(node) if name != NAME).encode()
    if isinstance(node, list):
        return "\n".join(node).encode()
    return node if isinstance(node, bytes) else str(node).encode()


def _listed(name: str, node: Node) -> str:
    if not isinstance(node, dict):
        return name
    return str(node.get(NAME, f"{name}/"))


def _ec2_id(kind: str, uuid: str) -> str:
    try:
        number = UUID(uuid).int
    except ValueError:
        # The server has no image: its root disk is a volume.
        number = 0
    return f"{kind}-{number:08x}"


def _block_device_mapping(facts: ServerFacts) -> dict[str, str]:
    root = facts.instance.root_device_name or "/dev/vda"
    found = {"ami": PurePosixPath(root).name, "root": root}
    volumes = ephemeral = 0
    for device in sorted(facts.block_devices, key=lambda device: device.device_name or ""):
        if not device.device_name:
            continue
        if device.is_swap:
            found["swap"] = device.device_name
        elif device.is_ephemeral:
            found[f"ephemeral{ephemeral}"] = device.device_name
            ephemeral += 1
        elif device.is_volume:
            found[f"ebs{volumes}"] = device.device_name
            volumes += 1
    return found
