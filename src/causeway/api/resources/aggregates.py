"""``/os-aggregates``. Source: Compute API reference, "Host aggregates".

Membership is mirrored into Placement for the scheduler's prefilters: the providers of a host's compute nodes get the
aggregate's uuid. Placement is changed first: if it refuses, nothing has changed, and repeating the change does no harm.
"""

from __future__ import annotations

import re
from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.answers import hosts as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import aggregates as schemas
from causeway.api.views import common
from causeway.model.host import Aggregate
from causeway.store import own_nodes
from causeway.store.api import aggregates as store
from causeway.store.api import cells as cell_records
from causeway.store.cell import instances

RULE = "os_compute_api:os-aggregates:"
ZONE = "availability_zone"
_ID = re.compile("-?[0-9]{1,18}")


class InvalidAggregateAction(errors.BadRequest):
    code = "invalid_aggregate_action"


def _view(request: ApiRequest, aggregate: Aggregate) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.availability_zone,
        "hosts": aggregate.hosts,
        "metadata": aggregate.metadata,
        "created_at": common.micros(aggregate.created_at),
        "updated_at": common.micros(aggregate.updated_at),
        "deleted": False,
        "deleted_at": None,
    }
    if request.version >= (2, 41):
        shown["uuid"] = aggregate.uuid
    return shown


def _find(request: ApiRequest, aggregate_id: str) -> Aggregate:
    if not _ID.fullmatch(aggregate_id):
        raise errors.BadRequest(f"Invalid aggregate id: {aggregate_id} is not an integer.")
    return store.get(request.services.api, int(aggregate_id))


def _answer(request: ApiRequest, aggregate: Aggregate) -> Response:
    return Response(200, {"aggregate": _view(request, store.get(request.services.api, aggregate.id))})


@handler(answer=answers.AGGREGATES)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "index")
    return Response(200, {"aggregates": [_view(request, one) for one in store.list_all(request.services.api)]})


@handler(answer=answers.AGGREGATE)
def show(request: ApiRequest, aggregate_id: str) -> Response:
    request.authorize(RULE + "show")
    return Response(200, {"aggregate": _view(request, _find(request, aggregate_id))})


@handler(body=schemas.CREATE, answer=answers.NEW_AGGREGATE)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create")
    wanted = request.body["aggregate"]
    zone = wanted.get(ZONE)
    aggregate = store.create(request.services.api, wanted["name"], {ZONE: zone} if zone else {})
    shown = _view(request, aggregate)
    # As in Nova: a new aggregate is shown without them.
    del shown["hosts"], shown["metadata"]
    return Response(200, {"aggregate": shown})


@handler(body=schemas.UPDATE, answer=answers.AGGREGATE)
def update(request: ApiRequest, aggregate_id: str) -> Response:
    request.authorize(RULE + "update")
    aggregate = _find(request, aggregate_id)
    wanted = request.body["aggregate"]
    changes: dict[str, Any] = {}
    if "name" in wanted:
        changes["name"] = wanted["name"]
    if ZONE in wanted:
        changes["metadata"] = _with_zone(request, aggregate, wanted[ZONE])
    store.update(request.services.api, aggregate.id, **changes)
    return _answer(request, aggregate)


def _with_zone(request: ApiRequest, aggregate: Aggregate, zone: str | None) -> dict[str, str]:
    """The aggregate's metadata with another zone; raises InvalidAggregateAction if its hosts can't change zone."""
    if zone != aggregate.availability_zone:
        problem = _zone_conflict(request, aggregate, aggregate.hosts, zone) or (
            "One or more hosts contain instances in this zone" if _have_servers(request, aggregate.hosts) else None
        )
        if problem:
            raise InvalidAggregateAction(f"Cannot update aggregate {aggregate.id}. Reason: {problem}.")
    metadata = {key: value for key, value in aggregate.metadata.items() if key != ZONE}
    return metadata | ({ZONE: zone} if zone else {})


def _zone_conflict(request: ApiRequest, aggregate: Aggregate, members: list[str], zone: str | None) -> str | None:
    """Why the hosts can't be in this zone: they are in another one already. None if they can."""
    if not zone:
        return None
    others = [other for other in store.list_all(request.services.api) if other.id != aggregate.id]
    zones_of_others = zones.zones_of_hosts(others)
    conflicts = sorted({zones_of_others[host] for host in members if zones_of_others.get(host, zone) != zone})
    return f"One or more hosts already in availability zone(s) {conflicts}" if conflicts else None


def _have_servers(request: ApiRequest, members: list[str]) -> bool:
    cells = cell_records.hosts(request.services.api)
    return any(
        instances.of_host(request.services.cells.database(cells[host]), host) for host in members if host in cells
    )


@handler(answer=EMPTY)
def delete(request: ApiRequest, aggregate_id: str) -> Response:
    request.authorize(RULE + "delete")
    aggregate = _find(request, aggregate_id)
    if aggregate.hosts:
        raise InvalidAggregateAction(f"Cannot delete aggregate {aggregate.id}. Reason: Host aggregate is not empty.")
    store.delete(request.services.api, aggregate.id)
    return Response(200)


def _providers(request: ApiRequest, host: str) -> list[str]:
    """The uuids of a host's compute nodes; raises HostNotFound."""
    cell_uuid = cell_records.cell_of_host(request.services.api, host)
    database = request.services.cells.database(cell_uuid)
    nodes = own_nodes.of_host(request.services.api, cell_uuid, database, host)
    if not nodes:
        raise errors.HostNotFound(f"Compute host {host} could not be found.")
    return [node.uuid for node in nodes]


@handler(body=schemas.ADD_HOST, answer=answers.AGGREGATE)
def add_host(request: ApiRequest, aggregate_id: str) -> Response:
    request.authorize(RULE + "add_host")
    host = request.body["add_host"]["host"]
    aggregate = _find(request, aggregate_id)
    if host in aggregate.hosts:
        raise errors.Conflict(f"Aggregate {aggregate.id} already has host {host}.")
    providers = _providers(request, host)
    zone = aggregate.availability_zone
    problem = _zone_conflict(request, aggregate, [host], zone)
    if not problem and zone and zone != zones.zone_of_host(request.services, host) and _have_servers(request, [host]):
        problem = "One or more hosts contain instances in this zone"
    if problem:
        raise errors.Conflict(f"Cannot add host to aggregate {aggregate.id}. Reason: {problem}.")
    for provider in providers:
        request.services.placement.add_aggregate(provider, aggregate.uuid)
    store.add_host(request.services.api, aggregate.id, host)
    return _answer(request, aggregate)


@handler(body=schemas.REMOVE_HOST, answer=answers.AGGREGATE)
def remove_host(request: ApiRequest, aggregate_id: str) -> Response:
    request.authorize(RULE + "remove_host")
    host = request.body["remove_host"]["host"]
    aggregate = _find(request, aggregate_id)
    if host not in aggregate.hosts:
        raise errors.NotFound(f"Cannot remove host {host} in aggregate {aggregate.id}: it is not a member.")
    zone = aggregate.availability_zone
    if zone and zone != request.services.conf.default_availability_zone and _have_servers(request, [host]):
        raise errors.Conflict(
            f"Cannot remove host from aggregate {aggregate.id}. Reason: One or more hosts contain instances in this zone."
        )
    try:
        providers = _providers(request, host)
    except errors.HostNotFound:
        # A host that no longer exists can still be removed.
        providers = []
    for provider in providers:
        request.services.placement.remove_aggregate(provider, aggregate.uuid)
    store.remove_host(request.services.api, aggregate.id, host)
    return _answer(request, aggregate)


@handler(body=schemas.SET_METADATA, answer=answers.AGGREGATE)
def set_metadata(request: ApiRequest, aggregate_id: str) -> Response:
    """Adds, changes, and (value null) removes metadata."""
    request.authorize(RULE + "set_metadata")
    aggregate = _find(request, aggregate_id)
    changes = request.body["set_metadata"]["metadata"]
    metadata = aggregate.metadata
    if ZONE in changes:
        if changes[ZONE] is not None and not changes[ZONE].strip():
            raise InvalidAggregateAction(
                f"Cannot update aggregate {aggregate.id}. Reason: Aggregate {aggregate.id} does not support empty named "
                "availability zone."
            )
        metadata = _with_zone(request, aggregate, changes[ZONE])
    metadata = metadata | {key: value for key, value in changes.items() if value is not None}
    metadata = {key: value for key, value in metadata.items() if changes.get(key, value) is not None}
    store.update(request.services.api, aggregate.id, metadata=metadata)
    return _answer(request, aggregate)


@handler(body=schemas.IMAGES, statuses=(202,), answer=EMPTY)
def cache_images(request: ApiRequest, aggregate_id: str) -> Response:
    """Asks the aggregate's hosts to cache images. Whether the images exist, only the hosts find out, as in Nova."""
    request.authorize("compute:aggregates:images", {})
    aggregate = _find(request, aggregate_id)
    image_ids = [each["id"] for each in request.body["cache"]]
    request.services.conductor.cache_images(request.context, aggregate_id=aggregate.id, image_ids=image_ids)
    return Response(202)
