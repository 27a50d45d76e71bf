"""``/os-migrations`` and ``/servers/{id}/migrations``. Source: Compute API reference, "Migrations", "Server migrations".

A migration has one row in the API database for its whole life, so none is ever listed twice or missing while it moves a
server from cell to cell.
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import changes, paging
from causeway.api.answers import migrations as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import migrations as schemas
from causeway.api.servers.actions import live_migration
from causeway.api.views import migrations as views
from causeway.model.migration import LIVE_MIGRATION, Migration
from causeway.model.states import MIGRATION_ENDED, MigrationStatus
from causeway.operations import requests
from causeway.store.api import mappings, shown_operations
from causeway.store.api import migrations as store

RULE = "os_compute_api:os-migrations:"
SERVER_RULE = "os_compute_api:servers:migrations:"


def _project(request: ApiRequest) -> str | None:
    """The project whose migrations are meant; None for all. Raises Forbidden if another one needs an administrator."""
    wanted = request.param("project_id") if request.version >= (2, 80) else None
    if request.allows(RULE + "index:all_projects"):
        return wanted
    if wanted is not None and wanted != request.project_id:
        request.authorize(RULE + "index:all_projects")
    return request.project_id


def _given_since(request: ApiRequest, name: str, first_minor: int) -> str | None:
    return request.param(name) if request.version >= (2, first_minor) else None


@handler(query=schemas.LIST, answer=answers.INDEX)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "index")
    paged = request.version >= (2, 59)
    status = request.param("status")
    since, before = changes.window(
        _given_since(request, "changes-since", 59), _given_since(request, "changes-before", 66)
    )
    try:
        found = store.search(
            request.services.api,
            instance_uuid=request.param("instance_uuid"),
            statuses=None if status is None else [status],
            host=request.param("host"),
            source_compute=request.param("source_compute"),
            migration_type=request.param("migration_type"),
            project_id=_project(request),
            user_id=request.param("user_id") if request.version >= (2, 80) else None,
            changes_since=since,
            changes_before=before,
            marker=request.param("marker") if paged else None,
            limit=paging.limit_of(request) if paged else None,
        )
    except errors.MigrationNotFound:
        raise errors.BadRequest(f"Marker {request.param('marker')} could not be found.") from None
    hosts = request.allows(RULE + "index:host")
    moving = _progress(request, _under_way(found))
    ended_badly = (MigrationStatus.ERROR, MigrationStatus.FAILED)
    failed = [migration.uuid for migration in found if migration.status in ended_badly]
    failures = shown_operations.failures(request.services.api, failed)
    body: dict[str, Any] = {
        "migrations": [
            views.entry(
                request,
                migration,
                hosts=hosts,
                progress=moving.get(migration.uuid),
                failure=failures.get(migration.uuid),
            )
            for migration in found
            if not migration.hidden
        ]
    }
    last = found[-1].uuid if found else None
    if paged and (links := paging.next_link(request, "/os-migrations", found, last)):
        body["migrations_links"] = links
    return Response(200, body)


def _under_way(found: list[Migration]) -> list[str]:
    """Migrations that a move may be working on."""
    settled = MIGRATION_ENDED | {MigrationStatus.FINISHED}
    return [migration.uuid for migration in found if migration.status not in settled]


def _authorize_server(request: ApiRequest, server_id: str, operation: str) -> None:
    mapping = mappings.get(request.services.api, server_id)
    request.authorize(SERVER_RULE + operation, {"project_id": mapping.project_id, "user_id": mapping.user_id})


def _moving(request: ApiRequest, server_id: str) -> list[Migration]:
    found = store.search(request.services.api, instance_uuid=server_id)
    under_way = set(_under_way(found))
    return [each for each in found if each.uuid in under_way and not live_migration.is_hidden(each)]


def _find(request: ApiRequest, server_id: str, migration_id: str) -> Migration:
    """A migration of the server that is under way, by its number or its uuid."""
    for migration in _moving(request, server_id):
        if migration_id in (str(migration.id), migration.uuid):
            return migration
    ended = live_migration.of_server(request, server_id, migration_id)
    if ended is None:
        raise errors.MigrationNotFound(f"In-progress migration {migration_id} is not found for server {server_id}.")
    if ended.migration_type == LIVE_MIGRATION:
        raise errors.MigrationNotFound(f"Live migration {migration_id} for server {server_id} is not in progress.")
    raise errors.MigrationNotFound(f"Migration {migration_id} for server {server_id} is not live-migration.")


@handler(answer=answers.INDEX_OF_SERVER)
def index_of_server(request: ApiRequest, server_id: str) -> Response:
    """Moves of the server that are under way. Nova shows live migrations only; here resizes can be watched, too."""
    _authorize_server(request, server_id, "index")
    found = _moving(request, server_id)
    progress = _progress(request, [migration.uuid for migration in found])
    hosts = request.allows(SERVER_RULE + "index:host")
    entries = [views.entry_of_server(request, each, progress.get(each.uuid), hosts=hosts) for each in found]
    return Response(200, {"migrations": entries})


@handler(answer=answers.SHOW_OF_SERVER)
def show_of_server(request: ApiRequest, server_id: str, migration_id: str) -> Response:
    _authorize_server(request, server_id, "show")
    found = _find(request, server_id, migration_id)
    progress = _progress(request, [found.uuid])
    return Response(200, {"migration": views.entry_of_server(request, found, progress.get(found.uuid), hosts=True)})


@handler(statuses=(202,), answer=EMPTY)
def cancel(request: ApiRequest, server_id: str, migration_id: str) -> Response:
    """Cancels a move that has not passed its pivot, and restores the server. In Nova: live migrations only."""
    _authorize_server(request, server_id, "delete")
    found = live_migration.of_server(request, server_id, migration_id)
    if found is None:
        raise errors.MigrationNotFound(f"Migration {migration_id} is not found for server {server_id}.")
    if found.migration_type == LIVE_MIGRATION:
        live_migration.abort(request, server_id, found)
        return Response(202)
    if not requests.cancel(request.services, server_id, found.uuid):
        raise errors.Conflict(
            f"Migration {migration_id} of server {server_id} can't be cancelled any more: its status is {found.status}, "
            "and what it does can't be undone now. Wait for its end, then revert the resize."
        )
    return Response(202)


def _progress(request: ApiRequest, migration_uuids: list[str]) -> dict[str, shown_operations.OperationProgress]:
    return shown_operations.progress(request.services.api, migration_uuids, request.services.now_of_transfers())
