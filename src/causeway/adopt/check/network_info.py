"""Nova's own copy of what Neutron says of a server's ports."""

from __future__ import annotations

import msgspec


def ports_in(network_info: str | None) -> list[str]:
    """The ids of the ports, in order; none if the copy can't be read: Nova makes it anew."""
    try:
        listed = msgspec.json.decode(network_info or "[]")
    except (msgspec.DecodeError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    return [str(vif["id"]) for vif in listed if isinstance(vif, dict) and vif.get("id")]


__all__ = ["ports_in"]
