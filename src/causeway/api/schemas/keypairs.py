"""Key pairs: what may be sent. Source: Compute API reference, "Keypairs"."""

from __future__ import annotations

from typing import Any

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_NAME: JsonSchema = common.NAME | {"pattern": r"^(?! )[a-zA-Z0-9 _-]+(?<! )$"}
_NAME_2_92: JsonSchema = _NAME | {"pattern": r"^(?! )[a-zA-Z0-9 _@.-]+(?<! )$"}
_KEY: JsonSchema = {"type": "string"}
_TYPE: JsonSchema = {"type": "string", "enum": ["ssh", "x509"]}
_USER: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255}


def _keypair(required: list[str], **fields: JsonSchema) -> JsonSchema:
    return common.body("keypair", common.properties(required, **fields))


CREATE: VersionedSchemas = [
    (1, 1, _keypair(["name"], name=_NAME, public_key=_KEY)),
    (2, 9, _keypair(["name"], name=_NAME, public_key=_KEY, type=_TYPE)),
    (10, 91, _keypair(["name"], name=_NAME, public_key=_KEY, type=_TYPE, user_id=_USER)),
    (92, None, _keypair(["name", "public_key"], name=_NAME_2_92, public_key=_KEY, type=_TYPE, user_id=_USER)),
]

_BY_USER: dict[str, Any] = {"user_id": common.many(common.ANY_STRING)}
_PAGED = _BY_USER | {"limit": common.many(common.LIMIT), "marker": common.many(common.MARKER)}
LIST: VersionedSchemas = [
    (1, 9, common.query({})),
    (10, 34, common.query(_BY_USER)),
    (35, 74, common.query(_PAGED)),
    (75, None, common.query(_PAGED, strict=True)),
]
ONE: VersionedSchemas = [
    (1, 9, common.query({})),
    (10, 74, common.query(_BY_USER)),
    (75, None, common.query(_BY_USER, strict=True)),
]
