"""How an answer differs from the schema of its handler: for ``[api] response_validation``.

Nearly all answers fit, so jsonschema-rs is asked first, which needs a sixtieth of the time of jsonschema. What it refuses is
looked at by jsonschema, which says what differs and has the last word. Formats that a list has in each row are patterns for
jsonschema-rs: calling Python for each of them took as long as all else.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import jsonschema
import jsonschema_rs
import msgspec

from causeway.api.request import Handler, JsonSchema, Response, schema_for
from causeway.api.validation import is_ipv6, once_for_each_schema, validator_of

_MOST_SAID = 5
# The rows of a list are made by the same lines of code, so some of them say what differs in all.
SAMPLE = 20
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# What `is_uuid` and `is_ipv4` accept.
_PATTERNS = {"uuid": "^-*([0-9a-fA-F]-*){32}$", "ipv4": f"^{_OCTET}(\\.{_OCTET}){{3}}$"}
# What else schemas of answers name. Another one is an error: jsonschema-rs would pass its values unseen.
_FORMATS = {"ipv6": is_ipv6}


def differences_of(answer: Response, handler: Handler, minor: int, *, rows: int | None = None) -> list[str]:
    """How an answer differs from its handler's schema; empty if it doesn't. Without values, which may be secret.

    ``rows``: of each of its lists only so many are looked at, other ones each time; None: all.
    """
    found = []
    if answer.status not in (statuses := handler.statuses_at(minor)):
        found.append(f"its status is {answer.status}, not {' or '.join(map(str, statuses))}")
    schema = schema_for(handler.answer, minor)
    if schema is None:
        return [*found, "there is no schema of this version"]
    # Decoded as a client does it: some parts of the body are stored JSON.
    body = msgspec.json.decode(_sample(answer, rows).encoded())
    if fits(body, schema):
        return found
    different = islice(validator_of(schema).iter_errors(body), _MOST_SAID)
    return found + [_difference(error) for error in different]


def _sample(answer: Response, rows: int | None) -> Response:
    body = answer.body
    if rows is None or not isinstance(body, dict):
        return answer
    long = {name: value for name, value in body.items() if isinstance(value, list) and len(value) > rows}
    if not long:
        return answer
    return Response(body=body | {name: random.sample(value, rows) for name, value in long.items()})


def fits(body: Any, schema: JsonSchema) -> bool:
    """Whether a decoded body fits, by jsonschema-rs."""
    return _quick_validator_of(schema).is_valid(body)


@once_for_each_schema
def _quick_validator_of(schema: JsonSchema) -> jsonschema_rs.Draft4Validator:
    return jsonschema_rs.Draft4Validator(_with_patterns(schema), formats=_FORMATS, ignore_unknown_formats=False)


def _with_patterns(schema: Any) -> Any:
    """The schema with patterns instead of the formats that have one."""
    if isinstance(schema, list):
        return [_with_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _with_patterns(part) for key, part in schema.items()}
    name = made.get("format")
    if isinstance(name, str) and name in _PATTERNS:
        del made["format"]
        # It may have a pattern of its own.
        made["allOf"] = [*made.get("allOf", []), {"pattern": _PATTERNS[name]}]
    return made


def _difference(error: jsonschema.ValidationError) -> str:
    if error.context:
        # None of several forms fits: report the one that comes closest.
        return _difference(jsonschema.exceptions.best_match(error.context))
    where = ".".join(map(str, error.absolute_path)) or "the whole"
    rule: Any = error.validator_value
    found: Any = error.instance
    schema: Any = error.schema
    match error.validator:
        case "required":
            return f"{where} lacks {', '.join(name for name in rule if name not in found)}"
        case "additionalProperties":
            return f"{where} also has {', '.join(sorted(set(found) - set(schema.get('properties', {}))))}"
        case "type":
            return f"{where} is of type {type(found).__name__}, not {rule}"
    return f"{where} does not fit {error.validator}: {rule}"
