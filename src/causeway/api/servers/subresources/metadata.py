"""``/servers/{server_id}/metadata``."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import holds, loading, schemas
from causeway.model.states import VmState
from causeway.store.cell import instances

_CHANGEABLE = (VmState.ACTIVE, VmState.PAUSED, VmState.SUSPENDED, VmState.STOPPED)
_COLUMNS = frozenset({"metadata"})
RULE = "os_compute_api:server-metadata:"


def check_quota(
    request: ApiRequest, project_id: str, metadata: dict[str, str], known: quota.Known | None = None
) -> None:
    """Raises OverQuota if the project may not have that many items on a server."""
    if not metadata:
        return
    message = "Maximum number of metadata items exceeded"
    quota.check_count(request.services, project_id, "metadata_items", message, more=len(metadata), known=known)


def _change(
    request: ApiRequest, server_id: str, rule: str, action: str, change: Callable[[dict[str, str]], dict[str, str]]
) -> dict[str, str]:
    """Replaces the metadata with what ``change`` returns for them, in one transaction; returns the new ones."""
    home = loading.load_in_cell(request, server_id, RULE + rule, action)
    loading.check_unlocked(request, home.instance)
    loading.check_state(home.instance, action, vm=_CHANGEABLE, task=None, launched=False)
    limits_of = home.instance.project_id
    # Before the transaction: other services are not called inside of one.
    limits = (
        None
        if rule == "delete" or quota.are_limits_stored_here(request.services)
        else quota.look_up(request.services, limits_of)
    )

    def replace(connection: sa.Connection) -> dict[str, str]:
        table = instances.TABLE
        present = connection.execute(
            sa.select(table.c.metadata).where(table.c.uuid == server_id, table.c.deleted.is_(False)).with_for_update()
        ).scalar_one_or_none()
        if present is None:
            raise errors.ServerNotFound(server_id)
        changed = change(dict(present))
        holds.check(request, limits_of, present, changed)
        if len(changed) > len(present):
            check_quota(request, limits_of, changed, limits)
        instances.update_in(connection, server_id, metadata=changed)
        return changed

    return loading.change(request, home, replace)


def _read(request: ApiRequest, server_id: str, rule: str) -> dict[str, str]:
    return loading.load(request, server_id, RULE + rule, columns=_COLUMNS, tags=False).instance.metadata


@handler(answer=server_parts.METADATA)
def index(request: ApiRequest, server_id: str) -> Response:
    return Response(200, {"metadata": _read(request, server_id, "index")})


@handler(answer=server_parts.META)
def show(request: ApiRequest, server_id: str, key: str) -> Response:
    metadata = _read(request, server_id, "show")
    if key not in metadata:
        raise errors.NotFound("Metadata item was not found")
    return Response(200, {"meta": {key: metadata[key]}})


@handler(body=schemas.METADATA, answer=server_parts.METADATA)
def create(request: ApiRequest, server_id: str) -> Response:
    new = request.body["metadata"]
    _change(request, server_id, "create", "create metadata", lambda present: present | new)
    return Response(200, {"metadata": new})


@handler(body=schemas.METADATA, answer=server_parts.METADATA)
def update_all(request: ApiRequest, server_id: str) -> Response:
    new = request.body["metadata"]
    changed = _change(request, server_id, "update_all", "update metadata", lambda _present: dict(new))
    return Response(200, {"metadata": changed})


@handler(body=schemas.META, answer=server_parts.META)
def update(request: ApiRequest, server_id: str, key: str) -> Response:
    new = request.body["meta"]
    if key not in new:
        raise errors.BadRequest("Request body and URI mismatch")
    _change(request, server_id, "update", "update metadata", lambda present: present | new)
    return Response(200, {"meta": new})


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, server_id: str, key: str) -> Response:
    def without(present: dict[str, str]) -> dict[str, str]:
        if key not in present:
            raise errors.NotFound("Metadata item was not found")
        return {name: value for name, value in present.items() if name != key}

    _change(request, server_id, "delete", "delete metadata", without)
    return Response(204)
