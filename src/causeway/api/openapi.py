"""The API described as OpenAPI 3.1, made from the route table and the schemas: one microversion at a time."""

from __future__ import annotations

import re
from typing import Any

from causeway.api import faults, versions
from causeway.api.dispatch import Route
from causeway.api.request import Handler, JsonSchema, schema_for
from causeway.api.schemas.common import NOTHING, takes_nothing

_JSON = "application/json"
_PARAMETER = re.compile(r"{(\w+)}")
_REFUSALS = {
    400: "Something in the request is wrong; the message says what.",
    401: "There is no valid token.",
    403: "Policy or quota does not allow it.",
    404: "There is no such thing, or not in this microversion.",
    409: "The state of things does not allow it now.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    501: "This is not implemented here.",
    503: "A service behind the API did not do its part; try again later.",
}


def description(table: list[Route], version: versions.Version = versions.MAX, *, server: str = "") -> dict[str, Any]:
    """The OpenAPI document of the routes that a microversion has. ``server``: the URL in front of the paths."""
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        if route.serves(version.minor):
            operations = paths.setdefault(route.path, {})
            method = route.method.lower()
            if method in operations:
                _add_action(operations[method], route, version)
            else:
                operations[method] = _operation(route, version)
    for path, operations in paths.items():
        names = _PARAMETER.findall(path)
        if names:
            operations["parameters"] = [_path_parameter(name) for name in names]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Causeway: Compute API",
            "version": str(version),
            "description": f"Send the header {versions.STANDARD_HEADER}: compute {version}.",
        },
        "servers": [{"url": f"{server}/v2.1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            "schemas": {"Fault": _fault()},
            "responses": {
                f"Fault{code}": {
                    "description": text,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}},
                }
                for code, text in _REFUSALS.items()
            },
        },
    }


def _fault() -> JsonSchema:
    one = {
        "type": "object",
        "required": ["code", "message"],
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    }
    names = sorted({*faults.NAMES.values(), "computeFault"})
    return {
        "type": "object",
        "minProperties": 1,
        "properties": dict.fromkeys(names, one),
        "additionalProperties": False,
    }


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _operation(route: Route, version: versions.Version) -> dict[str, Any]:
    handler = route.handler
    parameters = [
        {
            "name": versions.STANDARD_HEADER,
            "in": "header",
            "required": True,
            "schema": {"type": "string", "enum": [f"compute {version}"]},
        }
    ]
    if handler.query is not None:
        parameters += _query_parameters(schema_for(handler.query, version.minor) or {})
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()} {route.path}",
        "summary": (handler.run.__doc__ or handler.name.replace("_", " ").replace(".", ": ")).strip().split("\n")[0],
        "tags": [route.path.split("/")[1]],
        "parameters": parameters,
        "responses": _answers(handler, version.minor)
        | {str(code): {"$ref": f"#/components/responses/Fault{code}"} for code in _REFUSALS},
    }
    body = _body(route, version)
    if body is not None:
        operation["requestBody"] = {
            "required": not takes_nothing(body),
            "content": {_JSON: {"schema": body}},
        }
    return operation


def _answers(handler: Handler, minor: int) -> dict[str, Any]:
    schema = schema_for(handler.answer, minor)
    return {
        str(status): {"description": "Done." if status < 400 else "This was removed from the API."}
        | ({"content": {_JSON: {"schema": schema}}} if schema and not takes_nothing(schema) else {})
        for status in handler.statuses_at(minor)
    }


def _body(route: Route, version: versions.Version) -> JsonSchema | None:
    schema = schema_for(route.handler.body, version.minor) if route.handler.body is not None else None
    if schema is None and route.action is not None:
        return {"type": "object", "properties": {route.action: {}}, "required": [route.action]}
    return schema


def _add_action(operation: dict[str, Any], route: Route, version: versions.Version) -> None:
    """Adds an action to the operation of its path. Its body is then that of one of the actions."""
    content = operation["requestBody"]["content"][_JSON]
    before = content["schema"]
    content["schema"] = {"oneOf": [*before.get("oneOf", [before]), _body(route, version)]}
    for status, answer in _answers(route.handler, version.minor).items():
        operation["responses"][status] = _one_of(operation["responses"].get(status), answer)
    operation["summary"] = "Actions"


def _one_of(before: dict[str, Any] | None, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of several actions with the same status: one of their bodies, or none."""
    if before is None or before == answer:
        return answer
    found: list[Any] = []
    for each in (before, answer):
        schema = each["content"][_JSON]["schema"] if "content" in each else NOTHING
        found += [choice for choice in schema.get("anyOf", [schema]) if choice not in found]
    return {"description": "Done.", "content": {_JSON: {"schema": {"anyOf": found}}}}


def _query_parameters(schema: JsonSchema) -> list[dict[str, Any]]:
    """A parameter that may be repeated is shown as one value, or as what it may be when it is an array."""
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", []),
            "schema": values["items"] if values.get("type") == "array" else values,
        }
        for name, values in schema.get("properties", {}).items()
    ]
