"""The reference of the API: a page for each resource, made from the OpenAPI documents that the API itself makes.

For every operation its fields are compared over the microversions: each field is shown with those that have it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from causeway.api import openapi, routes, versions
from causeway.api.dispatch import Route
from causeway.api.microversions import CHANGES

REMOVED = "removed"
GONE = 410
# (first minor version, last minor version, what it is there)
Span = tuple[int, int, str]


def pages() -> dict[str, str]:
    """name of a resource -> its page in Markdown; ``removed`` has what is 410 in every microversion."""
    by_resource: dict[str, list[Route]] = defaultdict(list)
    for route in routes.ROUTES:
        by_resource[REMOVED if _is_gone(route) else route.path.split("/")[1]].append(route)
    return {
        name: _removed(found)
        if name == REMOVED
        else "\n".join([f"# {name}\n", *map(_operation, sorted(found, key=_order))])
        for name, found in sorted(by_resource.items())
    }


def index(names: list[str]) -> str:
    """The page above them."""
    return "\n".join(
        [
            "# The API, by resource and microversion\n",
            f"Made from the API's own description, {versions.MIN} to {versions.MAX}. A cloud serves it as OpenAPI 3.1, for each",
            "microversion: `GET /openapi.json`, with the microversion in the header as in every request. Paths: below `/v2.1`.",
            "A field without a range is in every microversion of its operation. The body of an error is",
            '`{"NAME": {"code": ..., "message": ...}}`.\n',
            *(f"- [{name}]({name}.md)" for name in names if name != REMOVED),
            f"- [what was removed]({REMOVED}.md)\n",
            "## What each microversion changed\n",
            "| microversion | change |",
            "|---|---|",
            *(f"| {versions.MIN.major}.{minor} | {change} |" for minor, change in CHANGES.items()),
            "",
        ]
    )


def _is_gone(route: Route) -> bool:
    return all(code == GONE for code in route.handler.statuses_at(route.first))


def _order(route: Route) -> tuple[str, str, str, int]:
    return route.path, route.method, route.action or "", route.first


def _removed(gone: list[Route]) -> str:
    rows = sorted({(route.path, route.method) for route in gone})
    return "\n".join(
        [
            "# What was removed\n",
            "These operations answer 410 in every microversion that has their path; see [features](../../features.md).\n",
            "| path | methods |\n|---|---|",
            *(f"| `{path}` | {', '.join(method for each, method in rows if each == path)} |" for path in dict(rows)),
            "",
        ]
    )


def _operation(route: Route) -> str:
    heading = f"{route.method} {route.path}" + (f" ({route.action})" if route.action else "")
    last = versions.MAX.minor if route.last is None else route.last
    until = "and later" if route.last is None else f"to 2.{route.last}"
    parts = [f"## {heading}\n"]
    query: dict[str, list[Span]] = defaultdict(list)
    body: dict[str, list[Span]] = defaultdict(list)
    answers: dict[str, dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    statuses: dict[str, list[Span]] = defaultdict(list)
    summary = ""
    for first, end in _ranges(route, last):
        described = openapi.description([route], versions.Version(2, first))["paths"][route.path][route.method.lower()]
        summary = described["summary"]
        for parameter in described["parameters"]:
            if parameter["in"] == "query":
                _add(query[parameter["name"]], first, end, _kind(parameter["schema"]))
        for path, kind in _fields(described.get("requestBody", {}).get("content", {})):
            _add(body[path], first, end, kind)
        for status, answer in described["responses"].items():
            if "$ref" not in answer:
                fields = answers[status]
                _add(statuses[status], first, end, "")
                for path, kind in _fields(answer.get("content", {})):
                    _add(fields[path], first, end, kind)
    parts.append(f"{_plain(summary)}\n\nMicroversions 2.{route.first} {until}.\n")
    whole = (route.first, last)
    parts += _table("Query parameters", query, whole) + _table("Body", body, whole)
    for status, fields in sorted(answers.items()):
        when = ", ".join(filter(None, (_shown(start, end, whole) for start, end, _ in statuses[status])))
        title = f"Answer {status}, {when}" if when else f"Answer {status}"
        parts += _table(title, fields, whole) or [f"**{title}**: no body.\n"]
    return "\n".join(parts)


def _ranges(route: Route, last: int) -> Iterator[tuple[int, int]]:
    """The ranges of minor versions inside which the operation stays the same."""
    handler = route.handler
    changes = {route.first}
    for choices in (handler.answer, handler.body, handler.query, handler.statuses):
        for choice in choices or ():
            if isinstance(choice, tuple):
                changes |= {choice[0], choice[1] + 1} if choice[1] is not None else {choice[0]}
    starts = sorted(start for start in changes if route.first <= start <= last)
    yield from zip(starts, [start - 1 for start in starts[1:]] + [last], strict=True)


def _add(spans: list[Span], first: int, last: int, kind: str) -> None:
    """Adds a range to a field's; ranges that follow one another with the same kind become one."""
    if spans and spans[-1][1] + 1 == first and spans[-1][2] == kind:
        spans[-1] = (spans[-1][0], last, kind)
    elif not spans or spans[-1][1] < first:
        spans.append((first, last, kind))


def _table(title: str, fields: dict[str, list[Span]], whole: tuple[int, int]) -> list[str]:
    if not fields:
        return []
    rows = [f"**{title}**\n", "| field | what | microversions |", "|---|---|---|"]
    for path, spans in fields.items():
        for first, last, kind in spans:
            rows.append(f"| `{path}` | {kind} | {_shown(first, last, whole)} |")
    return [*rows, ""]


def _shown(first: int, last: int, whole: tuple[int, int]) -> str:
    """A range of microversions in words; nothing if it is the operation's own."""
    if (first, last) == whole:
        return ""
    if last == whole[1]:
        return f"from 2.{first}"
    return f"2.{first} to 2.{last}" if first < last else f"2.{first}"


def _fields(content: dict[str, Any]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for media in content.values():
        _flatten(media["schema"], "", found)
    return list(found.items())


def _flatten(schema: Any, path: str, found: dict[str, str]) -> None:
    """Every field of a schema, by its path: ``server.networks[].uuid``."""
    if not isinstance(schema, dict):
        return
    if path and path not in found:
        found[path] = _kind(schema)
    for name, inner in schema.get("properties", {}).items():
        _flatten(inner, f"{path}.{name}".lstrip("."), found)
    for inner in schema.get("patternProperties", {}).values():
        _flatten(inner, f"{path}.NAME".lstrip("."), found)
    _flatten(schema.get("additionalProperties"), f"{path}.NAME".lstrip("."), found)
    _flatten(schema.get("items"), f"{path}[]", found)
    for key in ("oneOf", "anyOf", "allOf"):
        for choice in schema.get(key, ()):
            _flatten(choice, path, found)


def _kind(schema: dict[str, Any]) -> str:
    """What a value may be, in a few words."""
    kinds: list[str] = []
    for each in (schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if isinstance(each, dict):
            named = each.get("type", [])
            kinds += [kind for kind in ([named] if isinstance(named, str) else named) if kind not in kinds]
    shown = " or ".join(kinds) or ("one of" if "enum" in schema else "anything")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        listed = ", ".join(f"`{value}`" if value != "" else '`""`' for value in values[:12])
        shown = f"{shown}: {listed}{', ...' if len(values) > 12 else ''}".replace("|", "\\|")
    limits = [
        f"{words} {schema[key]}"
        for key, words in (
            ("minLength", "at least"),
            ("maxLength", "at most"),
            ("minimum", "from"),
            ("maximum", "to"),
            ("maxItems", "at most"),
        )
        if key in schema
    ]
    return f"{shown} ({', '.join(limits)})" if limits else shown


def _plain(text: str) -> str:
    """A docstring's line as Markdown: what could be taken for markup is not."""
    return text.replace("``", "`").replace("<", "&lt;").replace("{", "\\{").strip()
