"""``PUT /servers/{server_id}``."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas, show
from causeway.api.servers.creating import access_addresses
from causeway.api.servers.views import WITH_FAULT, WITH_GROUPS, Extras, ServerView
from causeway.store import servers
from causeway.store.api import build_requests, mappings
from causeway.store.cell import actions, instances
from causeway.store.database import utcnow
from causeway.store.listing import Listed

UPDATE = "os_compute_api:servers:update"
_FIELDS = {"name": "display_name", "description": "display_description", "hostname": "hostname"}


@handler(body=schemas.UPDATE, answer=answers.UPDATE)
def update(request: ApiRequest, server_id: str) -> Response:
    found = loading.load(request, server_id, UPDATE, volumes=True, group=request.version >= (2, WITH_GROUPS))
    changes = _changes(request.body["server"])
    if "pinned_availability_zone" in request.body["server"]:
        changes["pinned_availability_zone"] = _pin(request, found, request.body["server"]["pinned_availability_zone"])
    if changes:
        _save(request, found, changes)
    return Response(200, {"server": _shown(request, found)})


def _changes(wanted: dict[str, Any]) -> dict[str, Any]:
    changes = {field: wanted[key] for key, field in _FIELDS.items() if key in wanted}
    changes |= access_addresses.changes(wanted)
    if "OS-DCF:diskConfig" in wanted:
        changes["auto_disk_config"] = wanted["OS-DCF:diskConfig"] == "AUTO"
    return changes


def _pin(request: ApiRequest, found: Listed, zone: str | None) -> str | None:
    """Pins the server to its own zone, or unpins it (None). Raises Conflict for any other zone (2.104)."""
    instance = found.instance
    if zone is not None and zone not in (instance.availability_zone, instance.pinned_availability_zone):
        raise errors.Conflict(
            f"Instance {instance.uuid} is in availability zone {instance.availability_zone}; it can't be pinned to {zone}."
        )
    with request.services.api.write() as connection:
        mappings.set_in_spec_in(connection, instance.uuid, availability_zone=zone)
    return zone


def _save(request: ApiRequest, found: Listed, changes: dict[str, Any]) -> None:
    instance = found.instance
    changes = changes | {"updated_at": utcnow()}
    for field, value in changes.items():
        setattr(instance, field, value)
    if found.cell_uuid is None:
        if build_requests.change_server(request.services.api, instance.uuid, changes):
            return
        # It has got its cell in the meantime.
        found.cell_uuid = mappings.get(request.services.api, instance.uuid).cell_uuid
        if found.cell_uuid is None:
            raise errors.ServerNotFound(instance.uuid)
    servers.change(
        request.services.cells,
        instance.uuid,
        found.cell_uuid,
        lambda connection: instances.update_in(connection, instance.uuid, **changes),
    )


def _shown(request: ApiRequest, found: Listed) -> dict[str, Any]:
    view = ServerView(request)
    changed = Listed.of(found.instance, found.cell_uuid, found.volumes, group=found.group)
    if request.version >= (2, 75):
        return show.whole(request, view, changed)
    extras = Extras()
    if changed.cell_uuid is not None and changed.status in WITH_FAULT:
        database = request.services.cells.database(changed.cell_uuid)
        extras.fault = actions.latest_faults(database, [changed.uuid]).get(changed.uuid)
    if request.version >= (2, WITH_GROUPS):
        extras.groups = [changed.group] if changed.group else []
    return view.detail(changed, extras, whole=False)
