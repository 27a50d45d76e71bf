"""Quota sets, quota classes and limits: what may be sent. Source: Compute API reference, "Quota sets"."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_LIMIT: JsonSchema = {
    "type": ["integer", "string"],
    "pattern": "^-?[0-9]+$",
    "minimum": -1,
    "maximum": common.MAX_INTEGER,
    "maxLength": 10,
}

_CORE = ["instances", "cores", "ram", "metadata_items", "key_pairs"]
_GROUPS = ["server_groups", "server_group_members"]
INJECTED = ["injected_files", "injected_file_content_bytes", "injected_file_path_bytes"]
NETWORK = ["fixed_ips", "floating_ips", "security_groups", "security_group_rules"]
# (first minor, last minor, resources)
SET_RESOURCES: list[tuple[int, int | None, list[str]]] = [
    (1, 35, _CORE + INJECTED + _GROUPS + NETWORK),
    (36, 56, _CORE + INJECTED + _GROUPS),
    (57, None, _CORE + _GROUPS),
]
CLASS_RESOURCES: list[tuple[int, int | None, list[str]]] = [
    (1, 49, _CORE + INJECTED + NETWORK),
    (50, 56, _CORE + INJECTED + _GROUPS),
    (57, None, _CORE + _GROUPS),
]


def resources_of(table: list[tuple[int, int | None, list[str]]], minor: int) -> list[str]:
    """The resources that have quotas in a minor version."""
    return next(names for first, last, names in table if first <= minor and (last is None or minor <= last))


UPDATE: VersionedSchemas = [
    (
        first,
        last,
        common.body("quota_set", common.properties([], **dict.fromkeys(names, _LIMIT), force=common.BOOLEAN)),
    )
    for first, last, names in SET_RESOURCES
]
# Every version accepts groups' quotas, though they are shown only from 2.50 on.
UPDATE_CLASS: VersionedSchemas = [
    (first, last, common.body("quota_class_set", common.properties([], **dict.fromkeys([*names, *_GROUPS], _LIMIT))))
    for first, last, names in CLASS_RESOURCES
]

_USER = {"user_id": common.many(common.ANY_STRING)}
QUERY: VersionedSchemas = [(1, 74, common.query(_USER)), (75, None, common.query(_USER, strict=True))]
_TENANT = {"tenant_id": common.many(common.ANY_STRING)}
LIMITS_QUERY: VersionedSchemas = [(1, 74, common.query(_TENANT)), (75, None, common.query(_TENANT, strict=True))]
