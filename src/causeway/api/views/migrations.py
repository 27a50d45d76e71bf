"""How migrations are shown."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.views import common
from causeway.model.migration import LIVE_IN_PROGRESS, LIVE_MIGRATION, Migration
from causeway.store.api.shown_operations import OperationProgress

# Clients of older versions validate answers with Nova's schemas, which allow no other keys.
_OURS_FROM = (2, 80)
_HOSTS = ("source_compute", "source_node", "dest_compute", "dest_node", "dest_host")


def entry(
    request: ApiRequest,
    migration: Migration,
    *,
    hosts: bool,
    progress: OperationProgress | None = None,
    failure: errors.CausewayError | None = None,
) -> dict[str, Any]:
    """``hosts``: whether the caller may see the hosts' names. ``progress``: that of a move under way.

    ``failure``: why the move failed, if it did. Both are shown from `_OURS_FROM` on.
    """
    shown: dict[str, Any] = {
        "id": migration.id,
        "instance_uuid": migration.instance_uuid,
        "status": migration.status,
        "old_instance_type_id": migration.old_flavor_id,
        "new_instance_type_id": migration.new_flavor_id,
        "created_at": common.micros(migration.created_at),
        "updated_at": common.micros(migration.updated_at),
    }
    shown |= {name: getattr(migration, name) if hosts else None for name in _HOSTS}
    if request.version >= (2, 23):
        shown["migration_type"] = migration.migration_type
        if migration.migration_type == LIVE_MIGRATION and migration.status in LIVE_IN_PROGRESS:
            path = f"servers/{migration.instance_uuid}/migrations"
            shown["links"] = common.links(request, path, str(migration.id))
    if request.version >= (2, 59):
        shown["uuid"] = migration.uuid
    if request.version >= (2, 80):
        shown |= {"user_id": migration.user_id, "project_id": migration.project_id}
    if failure is not None and request.version >= _OURS_FROM:
        shown["causeway:error"] = failure.message
        if hosts and failure.details:
            shown["causeway:error_details"] = failure.details
    return shown | _extension(request, progress)


def entry_of_server(
    request: ApiRequest, migration: Migration, progress: OperationProgress | None, *, hosts: bool
) -> dict[str, Any]:
    """A migration under way, as ``/servers/{id}/migrations`` shows it. Only live ones copy memory."""
    done = (progress.bytes_done if progress else None) or 0
    total = (progress.bytes_total if progress else None) or 0
    shown: dict[str, Any] = {
        "id": migration.id,
        "server_uuid": migration.instance_uuid,
        "status": migration.status,
        "created_at": common.micros(migration.created_at),
        "updated_at": common.micros(migration.updated_at),
        "disk_processed_bytes": done,
        "disk_remaining_bytes": max(total - done, 0),
        "disk_total_bytes": total,
        "memory_processed_bytes": 0,
        "memory_remaining_bytes": 0,
        "memory_total_bytes": 0,
    }
    if migration.migration_type == LIVE_MIGRATION:
        # None until the source reports them.
        shown |= {name: getattr(migration, name) for name in shown if name.endswith("_bytes")}
    shown |= {name: getattr(migration, name) if hosts else None for name in _HOSTS}
    if request.version >= (2, 59):
        shown["uuid"] = migration.uuid
    if request.version >= (2, 80):
        shown |= {"user_id": migration.user_id, "project_id": migration.project_id}
    return shown | _extension(request, progress)


def _extension(request: ApiRequest, progress: OperationProgress | None) -> dict[str, Any]:
    """Causeway's own keys, on moves that are under way only."""
    if progress is None or request.version < _OURS_FROM:
        return {}
    return {
        "causeway:step": progress.step,
        "causeway:bytes_done": progress.bytes_done,
        "causeway:bytes_total": progress.bytes_total,
        "causeway:percent": progress.percent,
        "causeway:round": progress.round,
        "causeway:seconds_left": progress.seconds_left,
    }
