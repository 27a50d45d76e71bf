"""Hypervisors: query parameters. Source: Compute API reference, "Hypervisors"."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common

_PAGE = {"limit": common.many(common.LIMIT), "marker": common.many(common.MARKER)}
_SERVERS = {"with_servers": common.once(common.BOOLEAN)}
_LIST = _SERVERS | {
    "limit": common.once(common.LIMIT),
    "marker": common.once(common.MARKER),
    "hypervisor_hostname_pattern": common.once(common.HOSTNAME),
}

LIST: VersionedSchemas = [
    (1, 32, common.query({})),
    (33, 52, common.query(_PAGE)),
    (53, None, common.query(_LIST, strict=True)),
]
SHOW: VersionedSchemas = [(1, 52, common.query({})), (53, None, common.query(_SERVERS, strict=True))]
