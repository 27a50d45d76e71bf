"""How flavors are shown."""

from __future__ import annotations

from typing import Any

from causeway.api.request import ApiRequest
from causeway.api.views import common
from causeway.model.flavor import Flavor


def basic(request: ApiRequest, flavor: Flavor) -> dict[str, Any]:
    """An entry of ``GET /flavors``."""
    entry: dict[str, Any] = {
        "id": flavor.flavorid,
        "name": flavor.name,
        "links": common.links(request, "flavors", flavor.flavorid),
    }
    if request.version >= (2, 55):
        entry["description"] = flavor.description
    return entry


def detailed(request: ApiRequest, flavor: Flavor, *, extra_specs: bool) -> dict[str, Any]:
    """``extra_specs``: whether the caller may see them (shown from 2.61)."""
    entry: dict[str, Any] = {
        "id": flavor.flavorid,
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "disk": flavor.root_gb,
        "swap": flavor.swap or (0 if request.version >= (2, 75) else ""),
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": flavor.is_public,
        "links": common.links(request, "flavors", flavor.flavorid),
    }
    if request.version < (2, 102):
        entry["OS-FLV-DISABLED:disabled"] = flavor.disabled
        entry["rxtx_factor"] = flavor.rxtx_factor or ""
    if request.version >= (2, 55):
        entry["description"] = flavor.description
    if request.version >= (2, 61) and extra_specs:
        entry["extra_specs"] = flavor.extra_specs
    return entry
