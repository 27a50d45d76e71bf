"""``/os-causeway/cells``: the cells of the cloud, and what is in them. Ours; the Compute API has no such resource."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.answers import ours
from causeway.api.request import ApiRequest, Response, handler
from causeway.model.host import CellMapping, ComputeNode, Service
from causeway.store.api import cells as records
from causeway.store.cell import hosts
from causeway.store.cells import Answers
from causeway.store.database import Database

RULE = "causeway:cells:"


@handler(answer=ours.CELLS)
def index(request: ApiRequest) -> Response:
    """All cells in the order in which they were made, including those that do not answer."""
    request.authorize(RULE + "index")
    cells = request.services.cells
    # Only the database knows a cell that was made or deleted just now.
    cells.refresh()
    return Response(200, {"cells": _views(request, cells.mappings(), cells.ask_all(_computes))})


@handler(answer=ours.CELL)
def show(request: ApiRequest, cell: str) -> Response:
    """One cell, by its name or id."""
    request.authorize(RULE + "show")
    found = _find(request, cell)
    cells = request.services.cells
    (view,) = _views(request, [found], cells.ask([found.uuid], _computes))
    return Response(200, {"cell": view})


@handler(answer=ours.HOSTS_OF_CELL)
def index_of_hosts(request: ApiRequest, cell: str) -> Response:
    """The hosts of a cell, with what their hypervisors have and how much of it is used."""
    request.authorize(RULE + "show")
    found = _find(request, cell)
    answers = request.services.cells.ask([found.uuid], _hosts)
    if found.uuid not in answers.by_cell:
        raise errors.CellDown(f"Cell {found.name} does not answer now. Try again later.")
    computes, nodes = answers.by_cell[found.uuid]
    by_host = {compute.host: compute for compute in computes}
    return Response(
        200,
        {"hosts": [_host(request, by_host.get(node.host), node) for node in sorted(nodes, key=lambda one: one.host)]},
    )


def _find(request: ApiRequest, cell: str) -> CellMapping:
    request.services.cells.refresh()
    known = request.services.cells.mappings()
    found = next((one for one in known if cell == one.uuid), next((one for one in known if cell == one.name), None))
    if found is None:
        raise errors.NotFound(f"Cell {cell} could not be found.")
    return found


def _hosts(cell: CellMapping, database: Database) -> tuple[list[Service], list[ComputeNode]]:
    return _computes(cell, database), hosts.list_nodes(database)


def _host(request: ApiRequest, compute: Service | None, node: ComputeNode) -> dict[str, Any]:
    return {
        "host": node.host,
        "hypervisor_hostname": node.hypervisor_hostname,
        "up": compute is not None and zones.is_up(request.services, compute),
        "disabled": compute is None or compute.disabled,
        "disabled_reason": None if compute is None else compute.disabled_reason,
        "guests": node.running_vms,
        "vcpus": node.vcpus,
        "vcpus_used": node.vcpus_used,
        "memory_mb": node.memory_mb,
        "memory_mb_used": node.memory_mb_used,
        "local_gb": node.local_gb,
        "local_gb_used": node.local_gb_used,
    }


def _computes(_cell: CellMapping, database: Database) -> list[Service]:
    return hosts.list_services(database, binary=zones.COMPUTE)


def _views(request: ApiRequest, cells: list[CellMapping], answers: Answers[list[Service]]) -> list[dict[str, Any]]:
    """``hosts`` counts those mapped to the cell. Only the cell itself knows how many are up, down and disabled."""
    contents = records.contents(request.services.api)
    views = []
    for cell in cells:
        computes = answers.by_cell.get(cell.uuid)
        host_count, server_count = contents.get(cell.uuid, (0, 0))
        counts: dict[str, int | None] = {"total": host_count, "up": None, "down": None, "disabled": None}
        if computes is not None:
            up = sum(zones.is_up(request.services, compute) for compute in computes)
            disabled = sum(compute.disabled for compute in computes)
            counts |= {"up": up, "down": len(computes) - up, "disabled": disabled}
        views.append(
            {
                "id": cell.uuid,
                "name": cell.name,
                "disabled": cell.disabled,
                "answers": computes is not None,
                "hosts": counts,
                "servers": server_count,
            }
        )
    return views
