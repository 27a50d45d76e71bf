"""Makes the PCI requests of a flavor from its aliases (``pci_passthrough:alias``).

Source: Compute admin guide, "Attaching physical PCI devices to guests"; configuration reference, [pci] alias.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterable
from typing import Any

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.pci import InstancePCIRequest

EXTRA_SPEC = "pci_passthrough:alias"
AFFINITY = "hw:pci_numa_affinity_policy"
OF_IMAGE = "hw_pci_numa_affinity_policy"
NUMA_POLICIES = ("required", "preferred", "legacy", "socket")
# Keys of an alias that describe a device.
_OF_DEVICE = ("vendor_id", "product_id")


def aliases(configured: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Returns name -> definitions. A name may have several definitions; devices of any of them are suitable.

    Raises BadRequest for an option that does not define an alias, as Nova does.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for text in configured:
        try:
            alias = json.loads(text)
            name = alias["name"]
            known = {
                "name",
                "numa_policy",
                "device_type",
                "capability_type",
                "live_migratable",
                "resource_class",
                "traits",
            }
            if not set(alias) <= {*known, *_OF_DEVICE} or alias.get("numa_policy") not in (None, *NUMA_POLICIES):
                raise ValueError("unknown keys or values")
        except (ValueError, KeyError, TypeError) as wrong:
            raise errors.BadRequest(f"Invalid PCI alias definition: {text}", details=f"[pci] alias: {wrong}") from wrong
        found.setdefault(name, []).append(alias)
    return found


def affinity_of(flavor: Flavor, image: ImageMeta | None = None) -> str | None:
    """Returns the policy of flavor or image for how near the server's devices must be to its memory; None: neither has one.

    Raises BadRequest for an unknown policy, or if flavor and image differ.
    """
    by_flavor = flavor.extra_specs.get(AFFINITY)
    by_image = image.properties.get(OF_IMAGE) if image is not None else None
    for policy in (by_flavor, by_image):
        if policy is not None and policy not in NUMA_POLICIES:
            raise errors.BadRequest(f"Invalid PCI NUMA affinity policy '{policy}'")
    if by_flavor is not None and by_image is not None and by_flavor != by_image:
        raise errors.BadRequest(
            f"Flavor and image ask for different PCI NUMA affinity policies: '{by_flavor}' and '{by_image}'."
        )
    return by_flavor or by_image


def pci_requests(flavor: Flavor, configured: Iterable[str], image: ImageMeta | None = None) -> list[InstancePCIRequest]:
    """Returns the flavor's requests. Raises BadRequest if it names an alias that is not defined."""
    wanted = flavor.extra_specs.get(EXTRA_SPEC)
    if not wanted:
        return []
    known = aliases(configured)
    affinity = affinity_of(flavor, image)
    requests = []
    for place, part in enumerate(wanted.split(",")):
        name, _colon, count = (piece.strip() for piece in part.partition(":"))
        if name not in known:
            raise errors.BadRequest(f"PCI alias {name} is not defined")
        if not count.isdecimal() or int(count) < 1:
            raise errors.BadRequest(f"Invalid PCI alias definition: '{part.strip()}' has no number of devices.")
        definitions = known[name]
        requests.append(
            InstancePCIRequest(
                # Equal requests have equal ids, so that a repeated order finds its claim.
                request_id=str(uuids.uuid5(uuids.NAMESPACE_OID, f"{place}:{part.strip()}")),
                count=int(count),
                spec=[_device(definition) for definition in definitions],
                alias_name=name,
                numa_policy=affinity or definitions[0].get("numa_policy"),
            )
        )
    return requests


def _device(alias: dict[str, Any]) -> dict[str, str]:
    device = {key: str(alias[key]).lower() for key in _OF_DEVICE if key in alias}
    if "device_type" in alias:
        device["dev_type"] = str(alias["device_type"])
    return device
