"""``/os-hosts`` (until 2.42). Source: Compute API reference, "Hosts" (deprecated)."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.answers import hosts as answers
from causeway.api.answers.parts import NEVER
from causeway.api.request import ApiRequest, Handler, Response, VersionedSchemas, handler
from causeway.api.resources import compute_services
from causeway.api.schemas import common
from causeway.api.unavailable import Unavailable
from causeway.store.cell import hosts, instances

RULE = "os_compute_api:os-hosts:"
LAST = 42
_SWITCH = {"type": ["string", "null"], "enum": ["enable", "disable", "Enable", "Disable", "ENABLE", "DISABLE", None]}
_UPDATE: VersionedSchemas = [
    (1, LAST, common.properties([], status=_SWITCH, maintenance_mode=_SWITCH) | {"minProperties": 1})
]


def _services(request: ApiRequest, **wanted: str) -> list[zones.ServiceInCell]:
    return zones.list_services(request.services, **wanted)[0]


def _compute(request: ApiRequest, host: str) -> zones.ServiceInCell:
    found = _services(request, host=host, binary=zones.COMPUTE)
    if not found:
        raise errors.NotFound(f"Compute host {host} could not be found.")
    return zones.mapped_one(request.services, found)


@handler(answer=answers.HOSTS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    zone = request.param("zone")
    shown = [
        {
            "host_name": found.service.host,
            "service": found.service.binary.removeprefix("nova-"),
            "zone": found.zone,
        }
        for found in _services(request)
        if not zone or found.zone == zone
    ]
    return Response(200, {"hosts": shown})


def _row(host: str, project: str, cpu: int, memory_mb: int, disk_gb: int) -> dict[str, Any]:
    return {
        "resource": {"host": host, "project": project, "cpu": cpu, "memory_mb": memory_mb, "disk_gb": disk_gb},
    }


@handler(answer=answers.HOST)
def show(request: ApiRequest, host: str) -> Response:
    """What the host has, what is in use, and what each project uses."""
    request.authorize(RULE + "show")
    database = request.services.cells.database(_compute(request, host).cell.uuid)
    nodes = hosts.list_nodes(database, host=host)
    if not nodes:
        raise errors.NotFound(f"Compute host {host} could not be found.")
    node = nodes[0]
    flavors: dict[str, list[Any]] = {}
    for instance in instances.of_host(database, host):
        flavors.setdefault(instance.project_id, []).append(instance.flavor)
    used = [flavor for found in flavors.values() for flavor in found]
    shown = [
        _row(host, "(total)", node.vcpus, node.memory_mb, node.local_gb),
        _row(host, "(used_now)", node.vcpus_used, node.memory_mb_used, node.local_gb_used),
        *(_row(host, project, *_sum(found)) for project, found in (("(used_max)", used), *flavors.items())),
    ]
    return Response(200, {"host": shown})


def _sum(flavors: list[Any]) -> tuple[int, int, int]:
    return (
        sum(flavor.vcpus for flavor in flavors),
        sum(flavor.memory_mb for flavor in flavors),
        sum(flavor.root_gb + flavor.ephemeral_gb for flavor in flavors),
    )


@handler(body=_UPDATE, answer=answers.CHANGED_HOST)
def update(request: ApiRequest, host: str) -> Response:
    request.authorize(RULE + "update")
    status, maintenance = (request.body.get(name) for name in ("status", "maintenance_mode"))
    if status is None and maintenance is None:
        raise errors.BadRequest("'status' or 'maintenance_mode' needed for host update")
    found = _compute(request, host)
    if maintenance is not None:
        raise Unavailable.HOST_MAINTENANCE.refusal(f"host {host}")
    disabled = str(status).lower() == "disable"
    compute_services.change(request, found, disabled=disabled)
    return Response(200, {"host": host, "status": "disabled" if disabled else "enabled"})


def power(name: str, what: Unavailable) -> Handler:
    """startup, shutdown or reboot of a host: no driver here can do it."""

    def run(request: ApiRequest, host: str) -> Response:
        request.authorize(RULE + name)
        _compute(request, host)
        raise what.refusal(f"host {host}")

    run.__name__ = name
    return handler(statuses=(), answer=NEVER)(run)
