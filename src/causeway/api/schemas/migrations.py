"""Migrations: query parameters. Source: Compute API reference, "Migrations"."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common

_LIST = {
    name: common.many(common.ANY_STRING)
    for name in ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type")
}
_LIST_2_59 = _LIST | {
    "instance_uuid": common.once(common.UUID),
    "limit": common.once(common.LIMIT),
    "marker": common.once(common.UUID),
    "changes-since": common.once(common.TIME),
}
_LIST_2_66 = _LIST_2_59 | {"changes-before": common.once(common.TIME)}
_OWNER = {"type": "string", "minLength": 1, "maxLength": 255}
_LIST_2_80 = _LIST_2_66 | {"user_id": common.once(_OWNER), "project_id": common.once(_OWNER)}
LIST: VersionedSchemas = [
    (1, 58, common.query(_LIST)),
    (59, 65, common.query(_LIST_2_59, strict=True)),
    (66, 79, common.query(_LIST_2_66, strict=True)),
    (80, None, common.query(_LIST_2_80, strict=True)),
]
