"""Server groups: what may be sent. Source: Compute API reference, "Server groups"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_HARD = ["anti-affinity", "affinity"]
_ALL = [*_HARD, "soft-anti-affinity", "soft-affinity"]


def _with_policies(allowed: list[str]) -> JsonSchema:
    policies: JsonSchema = {
        "type": "array",
        "items": {"type": "string", "enum": allowed},
        "minItems": 1,
        "maxItems": 1,
        "uniqueItems": True,
    }
    return common.body("server_group", common.properties(["name", "policies"], name=common.NAME, policies=policies))


_RULES = common.properties([], max_server_per_host=common.POSITIVE_INTEGER)
CREATE: VersionedSchemas = [
    (1, 14, _with_policies(_HARD)),
    (15, 63, _with_policies(_ALL)),
    (
        64,
        None,
        common.body(
            "server_group",
            common.properties(
                ["name", "policy"], name=common.NAME, policy={"type": "string", "enum": _ALL}, rules=_RULES
            ),
        ),
    ),
]

_LIST = {
    "all_projects": common.many(common.ANY_STRING),
    "limit": common.many(common.NUMBER),
    "offset": common.many(common.NUMBER),
}
LIST: VersionedSchemas = [(1, 74, common.query(_LIST)), (75, None, common.query(_LIST, strict=True))]
