"""``POST /os-server-external-events``: what the network and volume services tell. Source: Compute API reference."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import external_events as schemas
from causeway.model.events import ExternalEvent
from causeway.store.api import mappings
from causeway.store.cell import instances
from causeway.store.database import Database

NEEDS_TAG = frozenset({"volume-extended", "accelerator-request-bound", "volume-reimaged", "network-vif-deleted"})
POWER_TAGS = frozenset({"POWER_ON", "POWER_OFF"})
OK, BAD, MISSING, NO_HOST = 200, 400, 404, 422


@handler(body=schemas.CREATE, statuses=(200, 207))
def create(request: ApiRequest) -> Response:
    """Every event is answered for on its own; 207 if not all could be handed on, 404 if no server was there at all."""
    request.authorize("os_compute_api:os-server-external-events:create")
    events = [
        ExternalEvent(
            name=event["name"],
            server_uuid=event["server_uuid"],
            status=event.get("status", "completed"),
            tag=event.get("tag"),
        )
        for event in request.body["events"]
    ]
    hosts = _hosts(request, sorted({event.server_uuid for event in events}))
    codes = [_code(event, hosts) for event in events]
    if all(code == MISSING for code in codes):
        raise errors.NotFound("No instances found for any event")
    accepted = [event for event, code in zip(events, codes, strict=True) if code == OK]
    if accepted:
        request.services.conductor.external_events(request.context, events=accepted)
    shown = [_view(event, code) for event, code in zip(events, codes, strict=True)]
    return Response(200 if len(accepted) == len(events) else 207, {"events": shown})


def _hosts(request: ApiRequest, uuids: list[str]) -> dict[str, str | None]:
    """server -> its host (None: it has none), for the servers that are in a cell."""
    by_cell: dict[str, list[str]] = {}
    for uuid, cell_uuid in mappings.cells_of(request.services.api, uuids).items():
        if cell_uuid is not None:
            by_cell.setdefault(cell_uuid, []).append(uuid)
    found: dict[str, str | None] = {}
    for cell_uuid, wanted in by_cell.items():
        found |= _hosts_in(request.services.cells.database(cell_uuid), wanted)
    return found


def _hosts_in(database: Database, uuids: list[str]) -> dict[str, str | None]:
    table = instances.TABLE
    query = sa.select(table.c.uuid, table.c.host).where(table.c.uuid.in_(uuids), table.c.deleted.is_(False))
    with database.read() as connection:
        return {row.uuid: row.host for row in connection.execute(query)}


def _code(event: ExternalEvent, hosts: dict[str, str | None]) -> int:
    if event.server_uuid not in hosts:
        return MISSING
    if event.name == "power-update" and event.tag not in POWER_TAGS:
        return BAD
    if event.name in NEEDS_TAG and not event.tag:
        return BAD
    return NO_HOST if hosts[event.server_uuid] is None else OK


def _view(event: ExternalEvent, code: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": event.name, "server_uuid": event.server_uuid, "code": code}
    shown["status"] = event.status if code == OK else "failed"
    if event.tag is not None:
        shown["tag"] = event.tag
    return shown
