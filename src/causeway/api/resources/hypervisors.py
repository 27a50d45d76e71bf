"""``/os-hypervisors``. Source: Compute API reference, "Hypervisors"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from causeway import errors
from causeway.api import paging, zones
from causeway.api.answers import hosts as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common as types
from causeway.api.schemas import hypervisors as schemas
from causeway.api.unavailable import Unavailable
from causeway.api.validation import is_uuid
from causeway.api.views import hypervisors as views
from causeway.model.host import CellMapping, ComputeNode, Service
from causeway.store import own_nodes
from causeway.store.cell import hosts, instances
from causeway.store.database import Database

RULE = "os_compute_api:os-hypervisors:"
# Of a node in the database of its cell, which has 32 bits for it.
LARGEST_NUMBER = 2**31 - 1


@dataclass
class _Hypervisor:
    cell: CellMapping
    node: ComputeNode
    service: Service
    up: bool

    def shown_id(self, request: ApiRequest) -> str:
        return self.node.uuid if request.version >= (2, 53) else str(self.node.id)


def _all(request: ApiRequest) -> list[_Hypervisor]:
    """The hypervisors of all cells that answer, cell by cell.

    Without those that have no compute service, and without hosts that report the node or the name of another host: nobody could
    distinguish two with one id.
    """
    asked = request.services.cells.ask_all(partial(_of_cell, request), cell0=False)
    return own_nodes.of_all(request.services.api).among(chain(*asked.by_cell.values()), _place)


def _with_node(request: ApiRequest, node_uuid: str) -> list[_Hypervisor]:
    """Those of `_all` that have a node: one, or none. Asks only the cell of the node's host, if that is recorded."""
    cells, api = request.services.cells, request.services.api
    own = own_nodes.of_nodes(api, [node_uuid])
    cell_uuid = own.cell_of(node_uuid)
    question = partial(_of_cell, request, node_uuid=node_uuid)
    asked = cells.ask_all(question, cell0=False) if cell_uuid is None else cells.ask([cell_uuid], question)
    found = list(chain(*asked.by_cell.values()))
    if cell_uuid is None and found:
        own = own_nodes.of_nodes(api, [node_uuid], hosts={one.node.host for one in found})
    return own.among(found, _place)


def _with_number(request: ApiRequest, number: int) -> list[_Hypervisor]:
    """Those of `_all` whose node has a number in its cell, as ids were before 2.53: other cells may have it, too."""
    asked = request.services.cells.ask_all(
        lambda _cell, database: [node.uuid for node in hosts.list_nodes(database, node_id=number)], cell0=False
    )
    return [one for node_uuid in chain(*asked.by_cell.values()) for one in _with_node(request, node_uuid)]


def _of_cell(
    request: ApiRequest, cell: CellMapping, database: Database, *, node_uuid: str | None = None
) -> list[_Hypervisor]:
    """The hypervisors of a cell that have a compute service; or only the one with a node."""
    nodes = hosts.list_nodes(database, uuid=node_uuid)
    if node_uuid is None:
        found = hosts.list_services(database, binary=zones.COMPUTE)
    else:
        found = [one for node in nodes for one in hosts.list_services(database, host=node.host, binary=zones.COMPUTE)]
    services = {service.host: service for service in found}
    return [
        _Hypervisor(cell, node, services[node.host], zones.is_up(request.services, services[node.host]))
        for node in nodes
        if node.host in services
    ]


def _place(hypervisor: _Hypervisor) -> tuple[str, ComputeNode]:
    return hypervisor.cell.uuid, hypervisor.node


def _servers(request: ApiRequest, hypervisor: _Hypervisor) -> list[tuple[str, str]]:
    database = request.services.cells.database(hypervisor.cell.uuid)
    return [
        (instance.uuid, instance.display_name)
        for instance in instances.of_host(database, hypervisor.node.host)
        if not instance.hidden
    ]


def _wants_servers(request: ApiRequest) -> bool:
    if request.version < (2, 53):
        return False
    return types.to_bool(request.param("with_servers") or "")


def _matching(hypervisors: list[_Hypervisor], pattern: str) -> list[_Hypervisor]:
    """Those whose hostname contains the text. Raises NotFound if there is none."""
    found = [one for one in hypervisors if pattern.lower() in one.node.hypervisor_hostname.lower()]
    if not found:
        raise errors.NotFound(f"No hypervisor matching '{pattern}' could be found.")
    return found


def _list(request: ApiRequest, path: str, view: Any) -> Response:
    hypervisors = _all(request)
    pattern = request.param("hypervisor_hostname_pattern")
    if pattern is not None:
        if request.param("limit") is not None or request.param("marker") is not None:
            raise errors.BadRequest(
                "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported."
            )
        hypervisors = _matching(hypervisors, pattern)
    paged = request.version >= (2, 33) and pattern is None
    if paged:
        hypervisors = paging.page(request, hypervisors, lambda one: one.shown_id(request))
    with_servers = _wants_servers(request)
    body: dict[str, Any] = {
        "hypervisors": [
            view(request, one.node, one.service, one.up, _servers(request, one) if with_servers else None)
            for one in hypervisors
        ]
    }
    last = hypervisors[-1].shown_id(request) if hypervisors else None
    if paged and (links := paging.next_link(request, path, hypervisors, last)):
        body["hypervisors_links"] = links
    return Response(200, body)


def _find(request: ApiRequest, hypervisor_id: str) -> _Hypervisor:
    if request.version < (2, 53):
        number = int(hypervisor_id) if hypervisor_id.isdecimal() and len(hypervisor_id) <= 10 else LARGEST_NUMBER + 1
        found = _with_number(request, number) if number <= LARGEST_NUMBER else []
    elif is_uuid(hypervisor_id):
        found = _with_node(request, hypervisor_id)
    else:
        raise errors.BadRequest(f"Invalid uuid {hypervisor_id}")
    for hypervisor in found:
        if hypervisor.shown_id(request) == hypervisor_id:
            return hypervisor
    raise errors.NotFound(f"Hypervisor with ID '{hypervisor_id}' could not be found.")


@handler(query=schemas.LIST, answer=answers.HYPERVISORS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    return _list(request, "/os-hypervisors", views.basic)


@handler(query=schemas.LIST, answer=answers.HYPERVISORS_DETAIL)
def detail(request: ApiRequest) -> Response:
    request.authorize(RULE + "list-detail")
    return _list(request, "/os-hypervisors/detail", views.detailed)


@handler(query=schemas.SHOW, answer=answers.HYPERVISOR)
def show(request: ApiRequest, hypervisor_id: str) -> Response:
    request.authorize(RULE + "show")
    found = _find(request, hypervisor_id)
    servers = _servers(request, found) if _wants_servers(request) else None
    return Response(200, {"hypervisor": views.detailed(request, found.node, found.service, found.up, servers)})


@handler(answer=answers.UPTIME)
def uptime(request: ApiRequest, hypervisor_id: str) -> Response:
    request.authorize(RULE + "uptime")
    found = _find(request, hypervisor_id)
    if found.node.uptime is None:
        raise Unavailable.UPTIME.refusal(f"hypervisor {hypervisor_id}")
    shown = views.basic(request, found.node, found.service, found.up, None) | {"uptime": found.node.uptime}
    return Response(200, {"hypervisor": shown})


@handler(answer=answers.FOUND_HYPERVISORS)
def search(request: ApiRequest, hypervisor_id: str) -> Response:
    request.authorize(RULE + "search")
    found = _matching(_all(request), hypervisor_id)
    return Response(200, {"hypervisors": [views.basic(request, one.node, one.service, one.up, None) for one in found]})


@handler(answer=answers.SERVERS_OF_HYPERVISORS)
def servers(request: ApiRequest, hypervisor_id: str) -> Response:
    request.authorize(RULE + "servers")
    found = _matching(_all(request), hypervisor_id)
    shown = [views.basic(request, one.node, one.service, one.up, _servers(request, one)) for one in found]
    return Response(200, {"hypervisors": shown})


@handler(answer=answers.STATISTICS)
def statistics(request: ApiRequest) -> Response:
    request.authorize(RULE + "statistics")
    nodes = [one.node for one in _all(request) if not one.service.disabled]
    free = sum(node.local_gb - node.local_gb_used for node in nodes)
    counted = {"count": len(nodes), "disk_available_least": free} | views.sizes(nodes)
    return Response(200, {"hypervisor_statistics": counted})
