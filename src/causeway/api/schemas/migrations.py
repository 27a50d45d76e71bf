"""Migrations: query parameters. Source: Compute API reference, "Migrations"."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common

_LIST = {
    name: common.many(common.ANY_STRING)
    for name in ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type")
}
_LIST_2_59 = _LIST | {
    "limit": common.once(common.LIMIT),
    "marker": common.once(common.MARKER),
    "changes-since": common.once(common.TIME),
}
_LIST_2_66 = _LIST_2_59 | {"changes-before": common.once(common.TIME)}
_LIST_2_80 = _LIST_2_66 | {name: common.once(common.ANY_STRING) for name in ("user_id", "project_id")}
LIST: VersionedSchemas = [
    (1, 58, common.query(_LIST)),
    (59, 65, common.query(_LIST_2_59, strict=True)),
    (66, 79, common.query(_LIST_2_66, strict=True)),
    (80, None, common.query(_LIST_2_80, strict=True)),
]
