"""Flavors, as they are embedded in servers and requests."""

from __future__ import annotations

from typing import Any

from causeway.adopt.nova.objects import UnknownRecord
from causeway.model.flavor import Flavor


def flavor_of(data: Any, what: str) -> Flavor:
    """``data``: of Nova's object. Raises UnknownRecord."""
    try:
        return Flavor(
            flavorid=data["flavorid"],
            name=data["name"],
            vcpus=data["vcpus"],
            memory_mb=data["memory_mb"],
            root_gb=data["root_gb"],
            ephemeral_gb=data["ephemeral_gb"],
            swap=data["swap"],
            rxtx_factor=data.get("rxtx_factor") or 1.0,
            is_public=bool(data.get("is_public", True)),
            disabled=bool(data.get("disabled")),
            description=data.get("description"),
            extra_specs=dict(data.get("extra_specs") or {}),
            id=data.get("id") or 0,
        )
    except (KeyError, TypeError, AttributeError) as failure:
        raise UnknownRecord(f"{what} is not a flavor: {failure!r}") from failure


def optional_flavor(data: Any, what: str) -> Flavor | None:
    return None if data is None else flavor_of(data, what)
