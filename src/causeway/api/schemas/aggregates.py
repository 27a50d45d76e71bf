"""Aggregates: what may be sent. Source: Compute API reference, "Host aggregates"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_ZONE: JsonSchema = {"oneOf": [common.AZ_NAME, {"type": "null"}]}
_CREATE = common.properties(["name"], name=common.NAME, availability_zone=_ZONE)
_UPDATE = common.properties([], name=common.NAME, availability_zone=_ZONE) | {"minProperties": 1}
_HOST = common.properties(["host"], host=common.HOSTNAME)
_IMAGE = common.properties(["id"], id=common.UUID)

CREATE: VersionedSchemas = [(1, None, common.body("aggregate", _CREATE))]
UPDATE: VersionedSchemas = [(1, None, common.body("aggregate", _UPDATE))]
ADD_HOST: VersionedSchemas = [(1, None, common.body("add_host", _HOST))]
REMOVE_HOST: VersionedSchemas = [(1, None, common.body("remove_host", _HOST))]
SET_METADATA: VersionedSchemas = [
    (1, None, common.body("set_metadata", common.properties(["metadata"], metadata=common.METADATA_WITH_NULL)))
]
IMAGES: VersionedSchemas = [
    (
        81,
        None,
        common.properties(["cache"], cache={"type": "array", "items": _IMAGE, "minItems": 1, "uniqueItems": True}),
    )
]
