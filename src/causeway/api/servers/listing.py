"""``GET /servers`` and ``GET /servers/detail``. Source: Compute API reference; guide "Down cells"."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from causeway import errors
from causeway.api import paging
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import filters, hosts, schemas, specs
from causeway.api.servers.views import WITH_FAULT, Extras, ServerView
from causeway.model.host import CellMapping, Service
from causeway.model.instance import InstanceFault
from causeway.store import listing
from causeway.store.api import mappings
from causeway.store.cell import actions
from causeway.store.cell import hosts as host_records
from causeway.store.listing import Listed, Page, ServerQuery


@handler(query=schemas.LIST, answer=answers.INDEX)
def index(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:servers:index")
    return _answer(request, detailed=False)


@handler(query=schemas.LIST, answer=answers.DETAIL)
def detail(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:servers:detail")
    return _answer(request, detailed=True)


def _answer(request: ApiRequest, *, detailed: bool) -> Response:
    view = ServerView(request)
    query = _query(request, view, detailed)
    page = Page([], False, []) if query is None else listing.list_servers(request.services.cells, query)
    servers = [] if query is None else _of_down_cells(request, view, page.down, query.project_id, detailed)
    if detailed:
        servers += _details(request, view, page.servers)
    else:
        servers += [view.brief(row) for row in page.servers]
    body: dict[str, Any] = {"servers": servers}
    if page.more:
        body["servers_links"] = [_next_link(request, page, detailed)]
    return Response(200, body)


def _query(request: ApiRequest, view: ServerView, detailed: bool) -> ServerQuery | None:
    wanted = filters.wanted(request)
    project_id: str | None = request.project_id
    # As in Nova, a project can only be named together with all_tenants.
    if filters.asks_all_tenants(wanted):
        view_name = "detail" if detailed else "index"
        request.authorize(f"os_compute_api:servers:{view_name}:get_all_tenants")
        project_id = wanted.get("tenant_id") or wanted.get("project_id")
    else:
        wanted = {name: value for name, value in wanted.items() if name not in ("tenant_id", "project_id")}
    conditions = filters.conditions(request, wanted)
    if conditions is None:
        return None
    return ServerQuery(
        project_id=project_id,
        limit=paging.limit_of(request),
        conditions=conditions,
        sort=filters.sort_keys(request),
        marker=request.param("marker"),
        columns=view.columns() if detailed else frozenset(),
        tags=detailed and request.version >= (2, 26),
        volumes=detailed,
        lists_down_cells=request.version >= (2, 69) and filters.is_plain(request),
    )


def _next_link(request: ApiRequest, page: Page, detailed: bool) -> dict[str, str]:
    query = [(name, value) for name, values in request.query.items() if name != "marker" for value in values]
    marker = page.servers[-1].uuid
    path = "/servers/detail" if detailed else "/servers"
    return {"rel": "next", "href": request.self_url(path, [*query, ("marker", marker)])}


def _of_down_cells(
    request: ApiRequest, view: ServerView, down: list[CellMapping], project_id: str | None, detailed: bool
) -> list[dict[str, Any]]:
    """Partial records of servers whose cells do not answer: from 2.69 on in plain lists, else none.

    Raises CausewayError (500) instead of none unless [api] list_records_by_skipping_down_cells.
    """
    if not down:
        return []
    if request.version >= (2, 69) and filters.is_plain(request):
        found = [mappings.of_project(request.services.api, project_id, cell_uuid=cell.uuid) for cell in down]
        return [view.partial(mapping, detailed=detailed) for of_cell in found for mapping in of_cell]
    if not request.services.conf.api.list_records_by_skipping_down_cells:
        raise errors.ListIncomplete("Some cells do not answer; the list of servers would not be complete.")
    return []


def _details(request: ApiRequest, view: ServerView, rows: list[Listed]) -> list[dict[str, Any]]:
    faults = _faults(request, rows)
    services = _services(request, view, rows)
    hints = specs.hints_of(request, [row.uuid for row in rows]) if view.minor >= 100 else {}
    shown = []
    for row in rows:
        extras = Extras(faults.get(row.uuid))
        sight = view.sight(row)
        if sight.host_status or sight.unknown_host:
            host = row.values["host"]
            status = hosts.status_of(request, services.get(host or ""))
            extras.host_status = hosts.shown_status(host, sight, status)
        if view.minor >= 100:
            extras.hints = hints.get(row.uuid, {})
        shown.append(view.detail(row, extras))
    return shown


def _faults(request: ApiRequest, rows: list[Listed]) -> dict[str, InstanceFault]:
    failed: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.cell_uuid is not None and row.status in WITH_FAULT:
            failed[row.cell_uuid].append(row.uuid)
    found: dict[str, InstanceFault] = {}
    for cell_uuid, uuids in failed.items():
        found |= actions.latest_faults(request.services.cells.database(cell_uuid), uuids)
    return found


def _services(request: ApiRequest, view: ServerView, rows: list[Listed]) -> dict[str, Service]:
    """host -> compute service, read with one statement per cell; empty if the caller may not see their status."""
    sights = [view.sight(row) for row in rows[:1]]
    if not any(sight.host_status or sight.unknown_host for sight in sights):
        return {}
    found: dict[str, Service] = {}
    for cell_uuid in {row.cell_uuid for row in rows if row.cell_uuid is not None and row.values["host"]}:
        database = request.services.cells.database(cell_uuid)
        found.update({s.host: s for s in host_records.list_services(database, binary=hosts.COMPUTE)})
    return found
