"""Checks bodies and query parameters against JSON schemas, with Nova's wording of what is wrong."""

from __future__ import annotations

import base64
import ipaddress
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import urlsplit

import jsonschema
from dateutil import parser as date_parser

from causeway import errors
from causeway.api.request import JsonSchema
from causeway.store.patterns import InvalidPattern, compile_pattern

Made = TypeVar("Made")

FORMATS = jsonschema.FormatChecker(formats=())


def _format(name: str) -> Callable[[Callable[[str], bool]], Callable[[str], bool]]:
    """Registers a check of strings. Other values pass: ``type`` refuses them."""

    def register(check: Callable[[str], bool]) -> Callable[[str], bool]:
        FORMATS.checks(name)(lambda value: not isinstance(value, str) or check(value))
        return check

    return register


@_format("uuid")
def is_uuid(value: str) -> bool:
    """Whether it is a uuid, with or without dashes as in Nova."""
    try:
        return uuid.UUID(value).hex == value.replace("-", "").lower()
    except ValueError:
        return False


@_format("base64")
def is_base64(value: str) -> bool:
    """Whether it is base64. As in Nova, other characters are skipped; the rest must be complete."""
    try:
        base64.b64decode(value)
    except ValueError:
        return False
    return True


@_format("cidr")
def is_cidr(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


@_format("ipv4")
def is_ipv4(value: str) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


@_format("ipv6")
def is_ipv6(value: str) -> bool:
    try:
        return ipaddress.IPv6Address(value).scope_id is None
    except ValueError:
        return False


@_format("ip")
def is_ip(value: str) -> bool:
    return is_ipv4(value) or is_ipv6(value)


@_format("uri")
def is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


@FORMATS.checks("regex", raises=InvalidPattern)
def is_regex(value: object) -> bool:
    """Raises InvalidPattern for a bad pattern; the user gets its message."""
    if isinstance(value, str):
        compile_pattern(value)
    return value != ""


@_format("date-time")
def is_date_time(value: str) -> bool:
    return parse_time(value) is not None


@_format("name")
def is_name(value: str) -> bool:
    """Whether it is printable (with all kinds of spaces) and neither begins nor ends with a space."""
    return value == value.strip() and bool(value) and is_printable(value)


@_format("az_name")
def is_az_name(value: str) -> bool:
    """Whether it is a name without ``:``, which separates zone, host and node."""
    return is_name(value) and ":" not in value


@_format("printable")
def is_printable(value: str) -> bool:
    return all(
        character.isprintable() or (character.isspace() and character not in "\t\n\r\v\f") for character in value
    )


def parse_time(value: str) -> datetime | None:
    """An ISO 8601 time as UTC without a zone, as the databases have it; None if it is not a time."""
    try:
        parsed = date_parser.isoparse(value)
    except (ValueError, OverflowError):
        return None
    if parsed.tzinfo is None:
        return parsed
    try:
        return (parsed - (parsed.utcoffset() or (parsed - parsed))).replace(tzinfo=None)
    except OverflowError:
        return None


def _bound(original: Any) -> Any:
    """``minimum`` and ``maximum`` for numbers, and as in Nova for numbers that are written as strings, too."""

    def check(validator: Any, bound: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, str):
            try:
                instance = int(instance)
            except ValueError:
                return
        yield from original(validator, bound, instance, schema)

    return check


_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft4Validator,
    {name: _bound(jsonschema.Draft4Validator.VALIDATORS[name]) for name in ("minimum", "maximum")},
)


def once_for_each_schema(make: Callable[[JsonSchema], Made]) -> Callable[[JsonSchema], Made]:
    """Remembers what is made of a schema, by its identity: callers keep their schemas, and never change them."""
    known: dict[int, tuple[JsonSchema, Made]] = {}

    @wraps(make)
    def remembered(schema: JsonSchema) -> Made:
        found = known.get(id(schema))
        if found is None:
            # The schema is kept beside what was made of it, so that its id can't be taken by another one.
            found = known[id(schema)] = schema, make(schema)
        return found[1]

    return remembered


@once_for_each_schema
def validator_of(schema: JsonSchema) -> jsonschema.protocols.Validator:
    """What checks values against a schema, and says what differs."""
    used = _to_the_end(schema)
    _Validator.check_schema(used)
    made: jsonschema.protocols.Validator = _Validator(used, format_checker=FORMATS)
    return made


@once_for_each_schema
def _legacy_validator_of(schema: JsonSchema) -> jsonschema.protocols.Validator:
    return validator_of(_relaxed(schema))


def _errors(value: Any, schema: JsonSchema, legacy: bool) -> Iterator[jsonschema.ValidationError]:
    validator = _legacy_validator_of(schema) if legacy else validator_of(schema)
    return validator.iter_errors(value)


def _relaxed(schema: Any) -> Any:
    """The schema for the legacy endpoint, which ignores unknown fields."""
    if isinstance(schema, dict):
        return {
            key: True if key == "additionalProperties" and value is False else _relaxed(value)
            for key, value in schema.items()
        }
    return [_relaxed(part) for part in schema] if isinstance(schema, list) else schema


def _to_the_end(schema: Any) -> Any:
    """The schema with patterns that end where the text ends: in Python ``$`` also fits before a last line feed."""
    if isinstance(schema, dict):
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                made[key] = re.sub(r"\$$", r"\\Z", value)
            elif key == "patternProperties":
                made[key] = {re.sub(r"\$$", r"\\Z", name): _to_the_end(part) for name, part in value.items()}
            else:
                made[key] = _to_the_end(value)
        return made
    return [_to_the_end(part) for part in schema] if isinstance(schema, list) else schema


def _message(error: jsonschema.ValidationError, where: str, place: int) -> str:
    """``place``: the index, in the error's path, of the name that the user knows."""
    if not error.path:
        return str(error.message)
    why = f": {error.cause}" if isinstance(error.cause, InvalidPattern) else ""
    return f"Invalid input for {where} {error.path[place]}. Value: {error.instance}. {error.message}{why}"


def without_outer_spaces(value: Any, schema: JsonSchema) -> Any:
    """The value without spaces around names: the legacy endpoint removes them."""
    for choice in schema.get("oneOf", []):
        value = without_outer_spaces(value, choice)
    if isinstance(value, str):
        return value.strip() if schema.get("format") in ("name", "az_name") else value
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {key: without_outer_spaces(part, known.get(key, {})) for key, part in value.items()}
    if isinstance(value, list):
        return [without_outer_spaces(part, schema.get("items", {})) for part in value]
    return value


def check_body(body: Any, schema: JsonSchema, *, legacy: bool = False) -> None:
    """Raises ValidationFailed."""
    for error in _errors(body, schema, legacy):
        raise errors.ValidationFailed(_message(error, "field/attribute", -1))


def check_query(query: dict[str, list[str]], schema: JsonSchema, *, legacy: bool = False) -> None:
    """Raises ValidationFailed."""
    if not query and "required" not in schema:
        return
    for error in _errors(query, schema, legacy):
        raise errors.ValidationFailed(_message(error, "query parameters", 0))
