"""Parts that schemas of answers are made of.

A schema is written once for all versions. Parts that only some versions have are marked (`since`, `until`, `changing`), and
`versions` makes a list of schemas of it: one for each range of versions in which nothing changes::

    SHOW = versions(record({"thing": record({"id": UUID, "tags": since(26, many(TEXT))}, maybe={"fault": TEXT})}))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas.common import ANYTHING, NOTHING, UUID

# A schema, or a part that depends on the version.
Part = Any


@dataclass(frozen=True)
class Changing:
    """A part that differs by version: (first minor, last minor or None, part). Other versions do not have it."""

    choices: tuple[tuple[int, int | None, Part], ...]

    def at(self, minor: int) -> Part:
        for first, last, part in self.choices:
            if first <= minor and (last is None or minor <= last):
                return part
        return None


def changing(*choices: tuple[int, int | None, Part]) -> Changing:
    return Changing(choices)


def since(first: int, part: Part) -> Changing:
    return Changing(((first, None, part),))


def until(last: int, part: Part) -> Changing:
    return Changing(((1, last, part),))


TEXT: JsonSchema = {"type": "string"}
NUMBER: JsonSchema = {"type": "number"}
INTEGER: JsonSchema = {"type": "integer"}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
BOOLEAN: JsonSchema = {"type": "boolean"}
NULL = NOTHING
URL: JsonSchema = {"type": "string", "pattern": "^https?://"}
IP: JsonSchema = {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]}
MAC: JsonSchema = {"type": "string", "pattern": "^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"}
_TIME = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
# The forms in which times are written: with Z and no fraction; with microseconds and no zone; ours, as msgspec writes it.
SECONDS: JsonSchema = {"type": "string", "pattern": _TIME + "Z$"}
MICROS: JsonSchema = {"type": "string", "pattern": _TIME + r"\.[0-9]{6}$"}
TIME: JsonSchema = {"type": "string", "pattern": _TIME + r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$"}


def enum(*values: str | int | bool) -> JsonSchema:
    return {"enum": list(values)}


def null(schema: JsonSchema) -> JsonSchema:
    """The schema, or null."""
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, NULL]}


def many(part: Part, *, least: int = 0, most: int | None = None) -> JsonSchema:
    schema: JsonSchema = {"type": "array", "items": part}
    if least:
        schema["minItems"] = least
    return schema if most is None else schema | {"maxItems": most}


def mapping(part: Part) -> JsonSchema:
    """An object whose keys are not known beforehand."""
    return {"type": "object", "additionalProperties": part}


def either(*parts: Part) -> JsonSchema:
    return {"anyOf": list(parts)}


def record(always: Mapping[str, Part], maybe: Mapping[str, Part] | None = None) -> JsonSchema:
    """An object with the keys of ``always``, and perhaps those of ``maybe``; with no others."""
    return {
        "type": "object",
        "properties": {**always, **(maybe or {})},
        "required": list(always),
        "additionalProperties": False,
    }


def shown_as(key: str, part: Part, maybe: Mapping[str, Part] | None = None) -> VersionedSchemas:
    """An answer with one key."""
    return versions(record({key: part}, maybe))


def versions(part: Part) -> VersionedSchemas:
    """The schemas of a part: one for each range of versions in which it stays the same."""
    firsts = sorted({1, *_changes(part)})
    lasts: list[int | None] = [*(first - 1 for first in firsts[1:]), None]
    found: VersionedSchemas = []
    for first, last in zip(firsts, lasts, strict=True):
        schema = _resolved(part, first)
        if found and found[-1][2] == schema:
            # The change is inside a choice that this range of versions does not have.
            found[-1] = (found[-1][0], last, schema)
        elif schema is not None:
            found.append((first, last, schema))
    return found


def _changes(part: Part) -> Iterator[int]:
    """The minor versions at which a part changes."""
    if isinstance(part, Changing):
        for first, last, choice in part.choices:
            yield first
            if last is not None:
                yield last + 1
            yield from _changes(choice)
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _changes(inner)


def _resolved(part: Part, minor: int) -> Any:
    """The part as a version has it; None if the version does not have it."""
    if isinstance(part, Changing):
        return _resolved(part.at(minor), minor)
    if isinstance(part, list):
        return [found for inner in part if (found := _resolved(inner, minor)) is not None or inner is None]
    if not isinstance(part, dict):
        return part
    if "anyOf" in part and len(choices := _resolved(part["anyOf"], minor)) == 1:
        return choices[0]
    made = {key: _resolved(inner, minor) for key, inner in part.items() if key != "properties"}
    if "properties" in part:
        known = {name: _resolved(inner, minor) for name, inner in part["properties"].items()}
        made["properties"] = {name: inner for name, inner in known.items() if inner is not None}
        made["required"] = [name for name in part.get("required", ()) if name in made["properties"]]
        if not made["required"]:
            # The JSON Schema draft that validates does not allow an empty list.
            del made["required"]
    return made


NEXT = many(record({"rel": enum("next"), "href": URL}), least=1, most=1)
LINKS = many(record({"rel": enum("self", "bookmark"), "href": URL}), least=2, most=2)
BOOKMARK = many(record({"rel": enum("bookmark"), "href": URL}), least=1, most=1)

# The answer has no body.
EMPTY: VersionedSchemas = [(1, None, NOTHING)]
# There is no answer: every request is refused.
NEVER: VersionedSchemas = []

_SIMPLE: dict[Any, JsonSchema] = {
    str: TEXT,
    int: INTEGER,
    float: NUMBER,
    bool: BOOLEAN,
    datetime: TIME,
    Any: ANYTHING,
}


def of_type(kind: Any) -> JsonSchema:
    """The schema of a type of ``causeway.model`` that is shown with all its fields."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return record({field.name: of_type(hints[field.name]) for field in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return enum(*(one.value for one in kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return many(of_type(inner[0]))
    if origin is dict:
        return mapping(of_type(inner[1]))
    if origin in (Union, UnionType):
        (known,) = (each for each in inner if each is not NoneType)
        return null(of_type(known))
    raise TypeError(f"No schema is known for {kind}")


__all__ = ["ANYTHING", "NULL", "UUID"]
