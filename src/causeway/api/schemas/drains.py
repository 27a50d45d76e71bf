"""Drains: bodies and query parameters. Ours; the answers are made of `causeway.model.drains`."""

from __future__ import annotations

from typing import Any

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common
from causeway.model.drains import TO_CHOOSE, Afterwards, DrainServerState, DrainState, First

_MOST_NAMED = 10_000
# Null: the drain finds its limit while it runs.
_LIMIT: JsonSchema = {"type": ["integer", "null"], "minimum": 1, "maximum": 10_000}
_CLOCK: JsonSchema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}


def _names(one: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": one, "uniqueItems": True, "maxItems": _MOST_NAMED}


def _words(words: Any) -> JsonSchema:
    return {"type": "string", "enum": [word.value for word in words]}


_PLACES: dict[str, JsonSchema] = {name: _names(common.NAME) for name in ("cells", "hosts", "aggregates")}
_LIMITS: JsonSchema = common.properties(
    [],
    total=_LIMIT,
    per_source_host=_LIMIT,
    per_target_host=_LIMIT,
    per_cell_pair=_LIMIT,
    bytes_per_second={"type": ["integer", "null"], "minimum": 1 << 20, "maximum": 1 << 50},
)
_WINDOW: JsonSchema = common.properties(
    ["days", "start", "end"],
    days=_names({"type": "integer", "minimum": 0, "maximum": 6}) | {"minItems": 1},
    start=_CLOCK,
    end=_CLOCK,
    zone={"type": "string", "minLength": 1, "maxLength": 64},
)
_DRAIN: JsonSchema = common.properties(
    ["name", "scope"],
    name=common.NAME,
    scope=common.properties(
        [], zones=_names(common.NAME), projects=_names(common.PROJECT_ID), servers=_names(common.UUID), **_PLACES
    )
    | {"minProperties": 1},
    targets=common.properties([], **_PLACES),
    how=_words(TO_CHOOSE),
    flavors={"type": "object", "additionalProperties": common.NAME, "maxProperties": 1000},
    windows={"type": "array", "items": _WINDOW, "maxItems": 100},
    deadline={"type": ["string", "null"], "format": "date-time"},
    limits=_LIMITS,
    afterwards=_words(Afterwards),
    confirm_after={"type": ["number", "null"], "minimum": 0, "maximum": 8760},
    retries={"type": "integer", "minimum": 0, "maximum": 100},
    stop_after={"type": "integer", "minimum": 0, "maximum": 1_000_000},
    first=_words(First),
    reason=common.DESCRIPTION,
)
_PAGE = {"limit": common.once(common.LIMIT), "marker": common.once(common.UUID)}

CREATE: VersionedSchemas = [(1, None, common.body("drain", _DRAIN))]
UPDATE: VersionedSchemas = [(1, None, common.body("drain", common.properties(["limits"], limits=_LIMITS)))]
CANCEL: VersionedSchemas = [
    (1, None, common.body("cancel", {"type": ["object", "null"], "properties": {"undo": {"type": "boolean"}}}))
]
LIST: VersionedSchemas = [
    (1, None, common.query(_PAGE | {"state": common.many(_words(DrainState))}, strict=True)),
]
LIST_SERVERS: VersionedSchemas = [
    (1, None, common.query(_PAGE | {"state": common.many(_words(DrainServerState))}, strict=True)),
]


def bare(action: str) -> VersionedSchemas:
    """An action without parameters."""
    return [(1, None, common.body(action, common.NOTHING))]
