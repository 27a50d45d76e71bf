"""External events: what may be sent. Source: Compute API reference, "Create external events"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_BASE = ["network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted"]
# first minor version -> names that it adds
_ADDED = {
    51: "volume-extended",
    76: "power-update",
    82: "accelerator-request-bound",
    93: "volume-reimaged",
}
STATUSES = ["failed", "completed", "in-progress"]


def _events(names: list[str]) -> JsonSchema:
    event = common.properties(
        ["server_uuid", "name"],
        server_uuid=common.UUID,
        name={"type": "string", "enum": names},
        status={"type": "string", "enum": STATUSES},
        tag={"type": "string", "maxLength": 255},
    )
    return common.body("events", {"type": "array", "minItems": 1, "items": event})


def _versions() -> VersionedSchemas:
    schemas: VersionedSchemas = []
    names, first = list(_BASE), 1
    for minor, name in _ADDED.items():
        schemas.append((first, minor - 1, _events(list(names))))
        names.append(name)
        first = minor
    return [*schemas, (first, None, _events(names))]


CREATE = _versions()
