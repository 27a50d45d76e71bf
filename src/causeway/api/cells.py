"""``/os-causeway/cells``: the cells of the cloud, and what is in them. Ours; the Compute API has no such resource."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.flavor_access import NO_QUERY
from causeway.model.host import CellMapping, Service
from causeway.store.api import cells as records
from causeway.store.cell import hosts
from causeway.store.cells import Answers
from causeway.store.database import Database

RULE = "causeway:cells:"


@handler(query=NO_QUERY)
def index(request: ApiRequest) -> Response:
    """All cells in the order in which they were made, those that do not answer among them."""
    request.authorize(RULE + "index")
    cells = request.services.cells
    return Response(200, {"cells": _views(request, cells.mappings(), cells.ask_all(_computes))})


@handler(query=NO_QUERY)
def show(request: ApiRequest, cell: str) -> Response:
    """One cell, by its name or id."""
    request.authorize(RULE + "show")
    cells = request.services.cells
    # A cell that was made just now is known to the database only.
    known = [*cells.mappings(), *records.list_cells(request.services.api)]
    found = next((one for one in known if cell == one.uuid), next((one for one in known if cell == one.name), None))
    if found is None:
        raise errors.NotFound(f"Cell {cell} could not be found.")
    (view,) = _views(request, [found], cells.ask([found.uuid], _computes))
    return Response(200, {"cell": view})


def _computes(_cell: CellMapping, database: Database) -> list[Service]:
    return hosts.list_services(database, binary=zones.COMPUTE)


def _views(request: ApiRequest, cells: list[CellMapping], answers: Answers[list[Service]]) -> list[dict[str, Any]]:
    """``hosts``: how many are mapped to the cell; up, down and disabled ones only the cell itself knows."""
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
