"""Parts that many schemas are made of. The names are those of Nova's parameter types."""

from __future__ import annotations

from typing import Any

from causeway.api.request import JsonSchema, VersionedSchemas

MAX_INTEGER = 0x7FFFFFFF
MAX_TAGS = 50  # of a server

BOOLEAN: JsonSchema = {
    "type": ["boolean", "string"],
    "enum": [
        True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes",
        False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no",
    ],
}  # fmt: skip
# Filters also take shorter words.
BOOLEAN_WORDS = frozenset(str(word).lower() for word in BOOLEAN["enum"]) | {"y", "t", "n", "f"}
NAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
AZ_NAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "format": "az_name"}
DESCRIPTION: JsonSchema = {"type": ["string", "null"], "maxLength": 255, "format": "printable"}
HOSTNAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9-._]*$"}
UUID: JsonSchema = {"type": "string", "format": "uuid"}
PROJECT_ID: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9-]*$"}
PROJECT_OR_USER_ID: JsonSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^[^\x00-\x1f\x7f/]*$",
}
POSITIVE_INTEGER: JsonSchema = {
    "type": ["integer", "string"], "pattern": "^[0-9]*$", "minimum": 1, "maximum": MAX_INTEGER, "minLength": 1, "maxLength": 10,
}  # fmt: skip
NON_NEGATIVE_INTEGER: JsonSchema = POSITIVE_INTEGER | {"minimum": 0}
METADATA: JsonSchema = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
METADATA_WITH_NULL: JsonSchema = METADATA | {
    "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": ["string", "null"], "maxLength": 255}}
}
ANYTHING: JsonSchema = {}
NOTHING: JsonSchema = {"type": "null"}

# Query parameters: what one value must be. All values are strings.
ANY_STRING: JsonSchema = {"type": "string"}
NUMBER: JsonSchema = {"type": "string", "pattern": "^[0-9]+$", "maxLength": 255}
TIME: JsonSchema = {"type": "string", "format": "date-time"}
LIMIT = NUMBER
MARKER = ANY_STRING


def once(value: JsonSchema) -> JsonSchema:
    """A query parameter that may be given once."""
    return {"type": "array", "maxItems": 1, "items": value}


def many(value: JsonSchema) -> JsonSchema:
    """A query parameter that may be given any number of times."""
    return {"type": "array", "items": value}


def query(
    parameters: dict[str, JsonSchema], *, strict: bool = False, patterns: dict[str, JsonSchema] | None = None
) -> JsonSchema:
    """The schema of query parameters; ``strict``: unknown ones are refused, else they are ignored."""
    schema: dict[str, Any] = {"type": "object", "properties": parameters, "additionalProperties": not strict}
    if patterns:
        schema["patternProperties"] = patterns
    return schema


# For routes without parameters: all are ignored, or refused from 2.102 on.
IGNORED_QUERY: VersionedSchemas = [(1, None, query({}))]
NO_QUERY: VersionedSchemas = [(1, 101, query({})), (102, None, query({}, strict=True))]


def body(key: str, value: JsonSchema) -> JsonSchema:
    """A body with one key."""
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def takes_nothing(schema: JsonSchema) -> bool:
    """Whether the body may be missing."""
    kinds = schema.get("type", [])
    return "null" in ([kinds] if isinstance(kinds, str) else kinds)


def properties(required: list[str], additional: bool = False, /, **fields: JsonSchema) -> JsonSchema:
    """An object with these fields, and with others only if ``additional``."""
    schema: dict[str, Any] = {"type": "object", "properties": fields, "additionalProperties": additional}
    if required:
        schema["required"] = required
    return schema


def to_bool(value: Any) -> bool:
    """What a value of `BOOLEAN` means."""
    return value is True or (isinstance(value, str) and value.lower() in {"true", "1", "on", "yes", "y", "t"})
