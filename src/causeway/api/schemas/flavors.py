"""Flavors: what may be sent. Source: Compute API reference, "Flavors"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_NAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
_ID: JsonSchema = {
    "oneOf": [
        {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^(?! )[a-zA-Z0-9. _-]+(?<! )$"},
        {"type": "number"},
        {"type": "null"},
    ]
}
_SIZE: JsonSchema = common.NON_NEGATIVE_INTEGER
_COUNT: JsonSchema = common.POSITIVE_INTEGER
DESCRIPTION: JsonSchema = common.DESCRIPTION | {"maxLength": 65535}

_FIELDS: dict[str, JsonSchema] = {
    "name": _NAME,
    "id": _ID,
    "ram": _COUNT,
    "vcpus": _COUNT,
    "disk": _SIZE,
    "OS-FLV-EXT-DATA:ephemeral": _SIZE,
    "swap": _SIZE,
    "rxtx_factor": {
        "type": ["number", "string"], "pattern": r"^[0-9]+(\.[0-9]+)?$", "maxLength": 38, "minimum": 0, "maximum": 3.40282e38,
        "not": {"enum": [0]},
    },
    "os-flavor-access:is_public": common.BOOLEAN,
}  # fmt: skip
_REQUIRED = ["name", "ram", "vcpus", "disk"]
_FIELDS_2_102 = {name: schema for name, schema in _FIELDS.items() if name != "rxtx_factor"} | {
    "description": DESCRIPTION
}

CREATE: VersionedSchemas = [
    (1, 54, common.body("flavor", common.properties(_REQUIRED, **_FIELDS))),
    (55, 101, common.body("flavor", common.properties(_REQUIRED, **_FIELDS, description=DESCRIPTION))),
    (102, None, common.body("flavor", common.properties(_REQUIRED, **_FIELDS_2_102))),
]
UPDATE: VersionedSchemas = [
    (55, None, common.body("flavor", common.properties(["description"], description=DESCRIPTION))),
]

_SORTS: JsonSchema = {
    "type": "string",
    "enum": [
        "created_at", "description", "disabled", "ephemeral_gb", "flavorid", "id", "is_public", "memory_mb", "name",
        "root_gb", "rxtx_factor", "swap", "updated_at", "vcpu_weight", "vcpus",
    ],
}  # fmt: skip
_LIST: dict[str, JsonSchema] = {
    "limit": common.many(common.LIMIT),
    "marker": common.many(common.MARKER),
    "is_public": common.many(common.ANY_STRING),
    "minRam": common.many(common.ANY_STRING),
    "minDisk": common.many(common.ANY_STRING),
    "sort_key": common.many(_SORTS),
    "sort_dir": common.many({"type": "string", "enum": ["asc", "desc"]}),
}
LIST: VersionedSchemas = [
    (1, 74, common.query(_LIST)),
    (75, 101, common.query(_LIST, strict=True)),
    (102, None, common.query(_LIST | {"name": common.many(common.ANY_STRING)}, strict=True)),
]
