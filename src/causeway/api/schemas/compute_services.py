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
_NAMED = {"host": common.HOSTNAME, "binary": _BINARY, "disabled_reason": _REASON}
_NAMED_11 = _NAMED | {"forced_down": common.BOOLEAN}


def _by_host(*required: str) -> VersionedSchemas:
    """Each of these requests may have the fields of the others, and ignores them."""
    always = ["host", "binary"]
    return [
        (1, 10, common.properties([*always, *required], **_NAMED)),
        (11, 52, common.properties([*always, *required], **_NAMED_11)),
    ]


BY_HOST = _by_host()
WITH_REASON = _by_host("disabled_reason")
FORCE_DOWN = _by_host("forced_down")

_LIST = {"host": common.many(common.ANY_STRING), "binary": common.many(common.ANY_STRING)}
LIST: VersionedSchemas = [(1, 74, common.query(_LIST)), (75, None, common.query(_LIST, strict=True))]
