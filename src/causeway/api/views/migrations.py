"""How migrations are shown."""

from __future__ import annotations

from typing import Any

from causeway.api.request import ApiRequest
from causeway.api.views import common
from causeway.model.migration import Migration

_HOSTS = ("source_compute", "source_node", "dest_compute", "dest_node", "dest_host")


def entry(request: ApiRequest, migration: Migration, *, hosts: bool) -> dict[str, Any]:
    """``hosts``: whether the caller may see which hosts they are."""
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
    if request.version >= (2, 59):
        shown["uuid"] = migration.uuid
    if request.version >= (2, 80):
        shown |= {"user_id": migration.user_id, "project_id": migration.project_id}
    return shown
