"""``POST /os-server-external-events``: what the network and volume services report. Source: Compute API reference."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api.answers import server_parts
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import external_events as schemas
from causeway.model.events import ExternalEvent, HostEvents
from causeway.store.api import mappings
from causeway.store.cell import instances
from causeway.store.database import Database

NEEDS_TAG = frozenset({"volume-extended", "accelerator-request-bound", "volume-reimaged", "network-vif-deleted"})
POWER_TAGS = frozenset({"POWER_ON", "POWER_OFF"})
OK, BAD, MISSING, NO_HOST = 200, 400, 404, 422

# server -> (cell uuid, host) of every host that may wait for its events; servers that are in no cell are not in it
Hosts = dict[str, set[tuple[str, str]]]


@handler(body=schemas.CREATE, statuses=(200, 207), answer=server_parts.EXTERNAL_EVENTS)
def create(request: ApiRequest) -> Response:
    """Passes events on to hosts. Each event has its own code; 207 if not all are passed on, 404 if no server exists."""
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
    hosts = _hosts(request, {event.server_uuid for event in events})
    codes = [_code(event, hosts) for event in events]
    if all(code == MISSING for code in codes):
        raise errors.NotFound("No instances found for any event")
    accepted = [event for event, code in zip(events, codes, strict=True) if code == OK]
    if accepted:
        request.services.conductor.external_events(request.context, hosts=_routed(accepted, hosts))
    shown = [_view(event, code) for event, code in zip(events, codes, strict=True)]
    return Response(200 if len(accepted) == len(events) else 207, {"events": shown})


def _hosts(request: ApiRequest, uuids: set[str]) -> Hosts:
    by_cell: dict[str, list[str]] = {}
    for uuid, cell_uuid in mappings.cells_of(request.services.api, sorted(uuids)).items():
        if cell_uuid is not None:
            by_cell.setdefault(cell_uuid, []).append(uuid)
    found: Hosts = {}
    for cell_uuid, wanted in by_cell.items():
        found |= _hosts_in(request.services.cells.database(cell_uuid), cell_uuid, wanted)
    return found


def _hosts_in(database: Database, cell_uuid: str, uuids: list[str]) -> Hosts:
    table = instances.TABLE
    query = sa.select(table.c.uuid, table.c.host, table.c.migration_context).where(
        table.c.uuid.in_(uuids), table.c.deleted.is_(False)
    )
    with database.read() as connection:
        return {row.uuid: _ends(cell_uuid, row.host, row.migration_context) for row in connection.execute(query)}


def _ends(cell_uuid: str, host: str | None, moving: dict[str, Any] | None) -> set[tuple[str, str]]:
    """The hosts that work for a server: source and target while it is moved."""
    found = {(cell_uuid, host)} if host else set()
    for end in ("source", "dest") if moving else ():
        cell, name = (moving or {}).get(f"{end}_cell"), (moving or {}).get(f"{end}_host")
        if cell and name:
            found.add((cell, name))
    return found


def _routed(events: list[ExternalEvent], hosts: Hosts) -> list[HostEvents]:
    by_host: dict[tuple[str, str], list[ExternalEvent]] = {}
    for event in events:
        for end in hosts[event.server_uuid]:
            by_host.setdefault(end, []).append(event)
    return [HostEvents(cell, host, of_host) for (cell, host), of_host in sorted(by_host.items())]


def _code(event: ExternalEvent, hosts: Hosts) -> int:
    if event.server_uuid not in hosts:
        return MISSING
    if event.name == "power-update" and event.tag not in POWER_TAGS:
        return BAD
    if event.name in NEEDS_TAG and not event.tag:
        return BAD
    return OK if hosts[event.server_uuid] else NO_HOST


def _view(event: ExternalEvent, code: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": event.name, "server_uuid": event.server_uuid, "code": code}
    shown["status"] = event.status if code == OK else "failed"
    if event.tag is not None:
        shown["tag"] = event.tag
    return shown
