"""Usage reports: query parameters. Source: Compute API reference, "Usage reports"."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common

_SHOW = {"start": common.many(common.ANY_STRING), "end": common.many(common.ANY_STRING)}
_PAGE = {"limit": common.many(common.LIMIT), "marker": common.many(common.MARKER)}
_LIST = _SHOW | {"detailed": common.many(common.ANY_STRING)}

LIST: VersionedSchemas = [
    (1, 39, common.query(_LIST)),
    (40, 74, common.query(_LIST | _PAGE)),
    (75, None, common.query(_LIST | _PAGE, strict=True)),
]
SHOW: VersionedSchemas = [
    (1, 39, common.query(_SHOW)),
    (40, 74, common.query(_SHOW | _PAGE)),
    (75, None, common.query(_SHOW | _PAGE, strict=True)),
]
