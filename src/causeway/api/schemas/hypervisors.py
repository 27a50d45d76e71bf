"""Hypervisors: query parameters. Source: Compute API reference, "Hypervisors"."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common

_PAGE = {"limit": common.many(common.LIMIT), "marker": common.many(common.MARKER)}
_SERVERS = {"with_servers": common.many(common.BOOLEAN)}
_LIST = (
    _PAGE
    | _SERVERS
    | {"hypervisor_hostname_pattern": common.once({"type": "string", "minLength": 1, "maxLength": 255})}
)

LIST: VersionedSchemas = [
    (1, 32, common.query({})),
    (33, 52, common.query(_PAGE)),
    (53, 74, common.query(_LIST, strict=True)),
    (75, None, common.query(_LIST, strict=True)),
]
SHOW: VersionedSchemas = [(1, 52, common.query({})), (53, None, common.query(_SERVERS, strict=True))]
