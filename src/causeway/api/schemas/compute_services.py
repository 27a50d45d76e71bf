"""Compute services: what may be sent. Source: Compute API reference, "Compute services"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_REASON: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255}
_BINARY: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255}

UPDATE: VersionedSchemas = [
    (
        53,
        None,
        common.properties(
            [],
            status={"type": "string", "enum": ["enabled", "disabled"]},
            disabled_reason=_REASON,
            forced_down=common.BOOLEAN,
        ),
    )
]
BY_HOST: VersionedSchemas = [(1, 52, common.properties(["host", "binary"], host=common.HOSTNAME, binary=_BINARY))]
WITH_REASON: VersionedSchemas = [
    (
        1,
        52,
        common.properties(
            ["host", "binary", "disabled_reason"], host=common.HOSTNAME, binary=_BINARY, disabled_reason=_REASON
        ),
    )
]
FORCE_DOWN: VersionedSchemas = [
    (
        11,
        52,
        common.properties(
            ["host", "binary", "forced_down"], host=common.HOSTNAME, binary=_BINARY, forced_down=common.BOOLEAN
        ),
    )
]

_LIST = {"host": common.many(common.ANY_STRING), "binary": common.many(common.ANY_STRING)}
LIST: VersionedSchemas = [(1, 74, common.query(_LIST)), (75, None, common.query(_LIST, strict=True))]
