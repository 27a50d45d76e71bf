"""``/os-services``. Source: Compute API reference, "Compute services".

A disabled compute service carries the trait COMPUTE_STATUS_DISABLED in Placement, which keeps new servers away (see
`causeway.hosts.disabling`).
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.answers import hosts as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common as types
from causeway.api.schemas import compute_services as schemas
from causeway.api.validation import is_uuid
from causeway.api.views import common
from causeway.hosts.disabling import HostRecords, set_disabled
from causeway.hosts.host_removal import remove_host
from causeway.model.states import MIGRATION_ENDED, MigrationStatus
from causeway.store.api import cells as cell_records
from causeway.store.api import migrations as migration_records
from causeway.store.cell import hosts, instances

RULE = "os_compute_api:os-services:"


def _view(request: ApiRequest, found: zones.ServiceInCell) -> dict[str, Any]:
    service = found.service
    shown: dict[str, Any] = {
        "id": service.uuid if request.version >= (2, 53) else service.id,
        "binary": service.binary,
        "host": service.host,
        "zone": found.zone,
        "status": "disabled" if service.disabled else "enabled",
        "state": "up" if found.up else "down",
        "updated_at": common.micros(service.last_seen_up or service.updated_at),
        "disabled_reason": service.disabled_reason,
    }
    if request.version >= (2, 11):
        shown["forced_down"] = service.forced_down
    return shown


@handler(query=schemas.LIST, answer=answers.SERVICES)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    host, binary = request.param("host"), request.param("binary")
    found, down = zones.list_services(request.services, host=host, binary=binary)
    shown = [_view(request, one) for one in found]
    if down and request.version >= (2, 69) and binary in (None, zones.COMPUTE):
        down_cells = {cell.uuid for cell in down}
        shown += [
            {"binary": zones.COMPUTE, "host": name, "status": "UNKNOWN"}
            for name, cell_uuid in cell_records.hosts(request.services.api).items()
            if cell_uuid in down_cells and host in (None, name)
        ]
    return Response(200, {"services": shown})


def _by_id(request: ApiRequest, service_id: str) -> zones.ServiceInCell:
    """A service by its uuid (from 2.53) or its number. Raises BadRequest if several cells have one with that number."""
    by_uuid = request.version >= (2, 53)
    if by_uuid and not is_uuid(service_id):
        raise errors.BadRequest(f"Invalid uuid {service_id}")
    if not by_uuid and not (service_id.isascii() and service_id.isdigit()):
        raise errors.BadRequest(f"Invalid service id {service_id}: it must be an integer.")
    matching = [
        found
        for found in zones.list_services(request.services)[0]
        if service_id == (found.service.uuid if by_uuid else str(found.service.id))
    ]
    if not matching:
        raise errors.ServiceNotFound(f"Service {service_id} could not be found.")
    if len(matching) > 1:
        raise errors.BadRequest(
            f"Service id {service_id} refers to multiple services. Use microversion 2.53 or later, where ids are uuids."
        )
    return matching[0]


def _by_host(request: ApiRequest) -> zones.ServiceInCell:
    host, binary = request.body["host"], request.body["binary"]
    found, _down = zones.list_services(request.services, host=host, binary=binary)
    if not found:
        raise errors.ServiceNotFound(f"Could not find binary {binary} on host {host}.")
    return zones.mapped_one(request.services, found)


def change(request: ApiRequest, found: zones.ServiceInCell, **changes: Any) -> None:
    """Changes a service's record. What Placement knows of it is changed first."""
    database = request.services.cells.database(found.cell.uuid)
    if "disabled" in changes and zones.is_compute(found.service):
        services = request.services
        records = HostRecords(services.api, services.placement, found.cell.uuid, database)
        set_disabled(records, found.service, **changes)
    else:
        hosts.update_service(database, found.service.uuid, **changes)
    for name, value in changes.items():
        setattr(found.service, name, value)
    found.up = zones.is_up(request.services, found.service)


@handler(body=schemas.UPDATE, answer=answers.SERVICE)
def update(request: ApiRequest, service_id: str) -> Response:
    request.authorize(RULE + "update")
    wanted = request.body
    found = _by_id(request, service_id)
    if not zones.is_compute(found.service):
        raise errors.BadRequest(
            f"Updating a {found.service.binary} service is not supported. Only nova-compute services can be updated."
        )
    if "disabled_reason" in wanted and wanted.get("status") != "disabled":
        raise errors.BadRequest("Specifying disabled_reason requires that status is disabled.")
    changes: dict[str, Any] = {}
    if "status" in wanted:
        changes["disabled"] = wanted["status"] == "disabled"
        changes["disabled_reason"] = wanted.get("disabled_reason")
    if "forced_down" in wanted:
        changes["forced_down"] = types.to_bool(wanted["forced_down"])
    if not changes:
        raise errors.BadRequest("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
    change(request, found, **changes)
    return Response(200, {"service": _view(request, found)})


def _named(found: zones.ServiceInCell, **more: Any) -> Response:
    return Response(200, {"service": {"host": found.service.host, "binary": found.service.binary} | more})


@handler(body=schemas.BY_HOST, answer=answers.SERVICE_ENABLED)
def enable(request: ApiRequest) -> Response:
    request.authorize(RULE + "update")
    found = _by_host(request)
    change(request, found, disabled=False, disabled_reason=None)
    return _named(found, status="enabled")


@handler(body=schemas.BY_HOST, answer=answers.SERVICE_DISABLED)
def disable(request: ApiRequest) -> Response:
    request.authorize(RULE + "update")
    found = _by_host(request)
    # The reason of an earlier request no longer holds: now the service is disabled because of this one.
    change(request, found, disabled=True, disabled_reason=None)
    return _named(found, status="disabled")


@handler(body=schemas.WITH_REASON, answer=answers.SERVICE_DISABLED_WITH_REASON)
def disable_with_reason(request: ApiRequest) -> Response:
    request.authorize(RULE + "update")
    found = _by_host(request)
    reason = request.body["disabled_reason"]
    change(request, found, disabled=True, disabled_reason=reason)
    return _named(found, status="disabled", disabled_reason=reason)


@handler(body=schemas.FORCE_DOWN, answer=answers.SERVICE_FORCED_DOWN)
def force_down(request: ApiRequest) -> Response:
    request.authorize(RULE + "update")
    found = _by_host(request)
    forced_down = types.to_bool(request.body["forced_down"])
    change(request, found, forced_down=forced_down)
    return _named(found, forced_down=forced_down)


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, service_id: str) -> Response:
    """Deletes a service; a compute only when it has no servers and no migration of its host is under way."""
    request.authorize(RULE + "delete")
    found = _by_id(request, service_id)
    if zones.is_compute(found.service):
        _delete_host(request, found)
    hosts.delete_service(request.services.cells.database(found.cell.uuid), found.service.uuid)
    return Response(204)


def _delete_host(request: ApiRequest, found: zones.ServiceInCell) -> None:
    services, host = request.services, found.service.host
    database = services.cells.database(found.cell.uuid)
    if instances.of_host(database, host):
        raise errors.Conflict(
            "Unable to delete compute service that is hosting instances. Migrate or delete the instances first."
        )
    # Bugs 1829479, 1817833. An evacuation that is done waits only for this host to return, which it never will.
    ended = MIGRATION_ENDED | {MigrationStatus.DONE}
    if any(migration.status not in ended for migration in migration_records.search(services.api, host=host)):
        raise errors.Conflict(
            "Unable to delete compute service that has in-progress migrations. "
            "Complete the migrations or delete the instances first."
        )
    remove_host(services.api, services.placement, found.cell.uuid, database, host)
