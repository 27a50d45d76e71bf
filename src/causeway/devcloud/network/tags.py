"""/v2.0/{networks,subnets,ports}/{id}/tags."""

from collections.abc import Callable
from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.network import attributes, networks, ports, subnets
from causeway.devcloud.web import Call, Route

FINDERS: dict[str, Callable[[Call, str], Any]] = {
    "networks": networks.find_own,
    "subnets": subnets.find_own,
    "ports": ports.find,
}


def routes(path: str, family: str) -> list[Route]:
    """The tag routes of one family of resources; `path` ends in `/tags` and has one parameter before it."""
    find = FINDERS[family]

    def list_tags(call: Call, **ids: str) -> Json:
        return {"tags": find(call, *ids.values()).tags}

    def replace(call: Call, **ids: str) -> Json:
        row = find(call, *ids.values())
        row.tags = sorted(set(attributes.texts("tags", call.body().get("tags"))))
        return {"tags": row.tags}

    def clear(call: Call, **ids: str) -> None:
        find(call, *ids.values()).tags = []

    def check(call: Call, tag: str, **ids: str) -> None:
        _check(find(call, *ids.values()), tag)

    def add(call: Call, tag: str, **ids: str) -> None:
        row = find(call, *ids.values())
        row.tags = sorted({*row.tags, tag})

    def remove(call: Call, tag: str, **ids: str) -> None:
        row = find(call, *ids.values())
        _check(row, tag)
        row.tags = [each for each in row.tags if each != tag]

    return [
        Route("GET", path, list_tags),
        Route("PUT", path, replace),
        Route("DELETE", path, clear, 204),
        Route("GET", path + "/{tag}", check, 204),
        Route("PUT", path + "/{tag}", add, 201),
        Route("DELETE", path + "/{tag}", remove, 204),
    ]


def _check(row: Any, tag: str) -> None:
    if tag not in row.tags:
        raise not_found(f"Tag {tag} could not be found.", "TagNotFound")
