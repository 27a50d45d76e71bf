"""``/servers/{server_id}/tags`` (2.26)."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import sqlalchemy as sa

from causeway import errors
from causeway.api import validation
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common
from causeway.api.servers import loading, schemas
from causeway.model.states import VmState
from causeway.store.cell import instances

_CHANGEABLE = (VmState.ACTIVE, VmState.PAUSED, VmState.SUSPENDED, VmState.STOPPED)
_COLUMNS: frozenset[str] = frozenset()
RULE = "os_compute_api:os-server-tags:"


def _read(request: ApiRequest, server_id: str, rule: str) -> list[str]:
    return loading.load(request, server_id, RULE + rule, columns=_COLUMNS).instance.tags


def _change(
    request: ApiRequest, server_id: str, rule: str, action: str, change: Callable[[list[str]], list[str]]
) -> tuple[list[str], list[str]]:
    """Replaces the tags with what ``change`` returns for them, in one transaction; returns the old and the new ones.

    As in Nova, tags of a locked server may be changed.
    """
    home = loading.load_in_cell(request, server_id, RULE + rule, action)
    loading.check_state(home.instance, action, vm=_CHANGEABLE, task=None, launched=False)

    def replace(connection: sa.Connection) -> tuple[list[str], list[str]]:
        table = instances.TAGS
        # This serializes requests that change a server's tags.
        instances.touch_in(connection, server_id)
        rows = connection.execute(sa.select(table.c.tag).where(table.c.resource_id == server_id).order_by(table.c.tag))
        present = list(rows.scalars())
        changed = sorted(set(change(list(present))))
        if changed != present:
            instances.replace_tags(connection, server_id, changed)
        return present, changed

    return loading.change(request, home, replace)


@handler(query=common.IGNORED_QUERY, answer=server_parts.TAGS)
def index(request: ApiRequest, server_id: str) -> Response:
    return Response(200, {"tags": _read(request, server_id, "index")})


@handler(query=common.IGNORED_QUERY, statuses=(204,), answer=EMPTY)
def show(request: ApiRequest, server_id: str, tag: str) -> Response:
    if tag not in _read(request, server_id, "show"):
        raise _missing(server_id, tag)
    return Response(204)


@handler(body=schemas.NO_BODY, statuses=(201, 204), answer=EMPTY)
def update(request: ApiRequest, server_id: str, tag: str) -> Response:
    try:
        validation.check_body(tag, schemas.TAG)
    except errors.ValidationFailed as failure:
        raise errors.BadRequest(f"Tag '{tag}' is invalid. It must be a non empty string without characters '/' and ','. "
                                f"Validation error message: {failure.message}") from failure  # fmt: skip

    def add(present: list[str]) -> list[str]:
        if tag not in present and len(present) >= common.MAX_TAGS:
            raise errors.BadRequest(f"The number of tags exceeded the per-server limit {common.MAX_TAGS}")
        return [*present, tag]

    present, _changed = _change(request, server_id, "update", "update tag", add)
    if tag in present:
        return Response(204)
    location = request.self_url(f"/servers/{server_id}/tags/{quote(tag)}")
    return Response(201, None, {"Location": location})


@handler(body=schemas.TAGS, answer=server_parts.TAGS)
def update_all(request: ApiRequest, server_id: str) -> Response:
    new = request.body["tags"]
    _present, changed = _change(request, server_id, "update_all", "update tags", lambda _present: new)
    return Response(200, {"tags": changed})


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, server_id: str, tag: str) -> Response:
    def without(present: list[str]) -> list[str]:
        if tag not in present:
            raise _missing(server_id, tag)
        return [other for other in present if other != tag]

    _change(request, server_id, "delete", "delete tag", without)
    return Response(204)


@handler(statuses=(204,), answer=EMPTY)
def delete_all(request: ApiRequest, server_id: str) -> Response:
    _change(request, server_id, "delete_all", "delete tags", lambda _present: [])
    return Response(204)


def _missing(server_id: str, tag: str) -> errors.NotFound:
    return errors.NotFound(f"Server {server_id} has no tag '{tag}'")
