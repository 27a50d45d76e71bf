"""Compute hosts for the API: whether their services are up, and their status."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.servers.views import Sight
from causeway.model.host import ComputeNode, Service
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts as store
from causeway.store.database import utcnow

COMPUTE = "nova-compute"


def is_up(request: ApiRequest, service: Service) -> bool:
    return store.is_up(service, utcnow(), request.services.conf.service_down_time)


def service_of(request: ApiRequest, host: str, cell_uuid: str) -> Service | None:
    found = store.list_services(request.services.cells.database(cell_uuid), host=host, binary=COMPUTE)
    return found[0] if found else None


def check_up(request: ApiRequest, host: str, cell_uuid: str | None = None, *, or_fenced: bool = False) -> Service:
    """The host's compute service. Raises ServiceDown if it does not report; it may be disabled (bug 1938326).

    ``or_fenced``: accepts a fenced one, too: the operation does without it.
    """
    home = cell_uuid or cell_records.cell_of_host(request.services.api, host)
    service = service_of(request, host, home)
    if service is not None and or_fenced and service.forced_down:
        return service
    return _require_up(request, service)


def check_up_with_node(request: ApiRequest, host: str, cell_uuid: str) -> ComputeNode | None:
    """`check_up`, which also reads the host's node, in the same statement; None if the host has none."""
    service, node = store.service_and_node(request.services.cells.database(cell_uuid), host, COMPUTE)
    _require_up(request, service)
    return node


def _require_up(request: ApiRequest, service: Service | None) -> Service:
    if service is None or not is_up(request, service):
        raise errors.ServiceDown(
            "Service is unavailable at this time: the compute service of the server's host is down."
        )
    return service


def status_of(request: ApiRequest, service: Service | None) -> str:
    """``host_status`` of the Compute API; forced_down counts before disabled."""
    if service is None:
        return "UNKNOWN"
    if service.forced_down:
        return "DOWN"
    if service.disabled:
        return "MAINTENANCE"
    return "UP" if is_up(request, service) else "UNKNOWN"


def shown_status(host: str | None, sight: Sight, status: str) -> str | None:
    """The status of a server's host, if policy lets the caller see it; else None."""
    status = status if host else ""
    if sight.host_status:
        return status
    return status if sight.unknown_host and status == "UNKNOWN" else None
