"""What all lists of the Network API share: filters, `fields`, sorting, paging and visibility."""

from collections.abc import Iterable
from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.web import Call

NOT_FILTERS = frozenset(
    ("fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir", "fixed_ips", "tags", "tags-any", "not-tags")
)


def stamp(time: str) -> str:
    return time[:19] + "Z"


def many(value: Any) -> list[str]:
    """A query parameter's values, however often it was given."""
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def collection(call: Call, key: str, rows: Iterable[Json]) -> Json:
    params: dict[str, Any] = dict(call.request.params)
    if not params:
        return {key: list(rows)}
    wanted = {name: many(value) for name, value in params.items() if name not in NOT_FILTERS}
    found = [row for row in rows if _matches(row, wanted)]
    if "tags" in params:
        tags = _tags(params["tags"])
        found = [row for row in found if tags <= set(row.get("tags", ()))]
    if "tags-any" in params:
        tags = _tags(params["tags-any"])
        found = [row for row in found if tags & set(row.get("tags", ()))]
    found = _paged(params, found)
    if "fields" in params:
        fields = many(params["fields"])
        found = [{name: row[name] for name in fields if name in row} for row in found]
    return {key: found}


def one(call: Call, key: str, row: Json) -> Json:
    if "fields" in call.request.params:
        fields = many(call.request.params["fields"])
        row = {name: row[name] for name in fields if name in row}
    return {key: row}


def _tags(value: Any) -> set[str]:
    return {tag for each in many(value) for tag in each.split(",")}


def _matches(row: Json, wanted: dict[str, list[str]]) -> bool:
    return all(_equals(row[name], values) for name, values in wanted.items() if name in row)


def _equals(value: Any, wanted: list[str]) -> bool:
    if isinstance(value, bool):
        return any(value == (each.lower() in ("true", "1")) for each in wanted)
    if isinstance(value, list):
        return bool({str(each) for each in value} & set(wanted))
    return ("" if value is None else str(value)) in wanted


def _paged(params: dict[str, Any], rows: list[Json]) -> list[Json]:
    keys, directions = many(params.get("sort_key", [])), many(params.get("sort_dir", []))
    for position in reversed(range(len(keys))):
        key = keys[position]
        if rows and key not in rows[0]:
            raise bad_request(f"{key} is an invalid attribute for sort keys")
        descending = position < len(directions) and directions[position] == "desc"
        rows.sort(key=lambda row, key=key: (row[key] is not None, row[key]), reverse=descending)  # type: ignore[misc]
    if "marker" in params:
        ids = [row["id"] for row in rows]
        if params["marker"] not in ids:
            raise bad_request(f"The marker {params['marker']} is not among the resources.")
        rows = rows[ids.index(params["marker"]) + 1 :]
    if "limit" in params:
        if not str(params["limit"]).isdigit():
            raise bad_request("limit must be a number of 0 or more.")
        rows = rows[: int(params["limit"]) or None]
    return rows
