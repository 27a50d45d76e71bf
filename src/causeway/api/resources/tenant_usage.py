"""``/os-simple-tenant-usage``: what projects' servers used in a period. Source: Compute API reference, "Usage reports"."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.api import paging
from causeway.api.answers import projects as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common as types
from causeway.api.schemas import tenant_usage as schemas
from causeway.api.validation import parse_time
from causeway.model.instance import Instance
from causeway.store.cell import instances
from causeway.store.database import Database, utcnow

RULE = "os_compute_api:os-simple-tenant-usage:"
DEFAULT_PERIOD = timedelta(weeks=4)


@dataclass(frozen=True)
class Period:
    start: datetime
    end: datetime

    def hours(self, instance: Instance) -> float:
        """How many hours of the period a server existed."""
        start = max(instance.launched_at or self.end, self.start)
        end = min(instance.terminated_at or self.end, self.end)
        return max((end - start).total_seconds(), 0.0) / 3600


def _period(request: ApiRequest) -> Period:
    end = _time(request, "end") or utcnow()
    try:
        start = _time(request, "start") or end - DEFAULT_PERIOD
    except OverflowError as early:
        raise errors.BadRequest("Datetime is in invalid format") from early
    if start >= end:
        raise errors.BadRequest("Invalid start time. The start time cannot occur after the end time.")
    return Period(start, end)


def _time(request: ApiRequest, name: str) -> datetime | None:
    text = request.param(name)
    if text is None:
        return None
    time = parse_time(text.replace(" ", "T"))
    if time is None:
        raise errors.BadRequest("Datetime is in invalid format")
    return time


def _servers(request: ApiRequest, period: Period, project_id: str | None) -> list[Instance]:
    """Servers that existed in the period, deleted ones too, of all cells that answer; by project and uuid."""
    table = instances.TABLE
    query = instances.SELECT.where(
        table.c.launched_at.is_not(None),
        table.c.launched_at < period.end,
        sa.or_(table.c.terminated_at.is_(None), table.c.terminated_at > period.start),
        sa.or_(table.c.hidden.is_(False), table.c.hidden.is_(None)),
    )
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)

    def ask(_cell: object, database: Database) -> list[Instance]:
        return instances.select(database, query, with_tags=False)

    answers = request.services.cells.ask_all(ask)
    # While a move switches cells, both records may be visible for a moment.
    found = {instance.uuid: instance for listed in answers.by_cell.values() for instance in listed}
    servers = sorted(found.values(), key=lambda instance: (instance.project_id, instance.uuid))
    if request.version >= (2, 40):
        return paging.page(request, servers, lambda instance: instance.uuid)
    return servers


def _server_usage(instance: Instance, period: Period) -> dict[str, Any]:
    end = instance.terminated_at
    until = min(end or utcnow(), utcnow())
    return {
        "instance_id": instance.uuid,
        "name": instance.display_name,
        "tenant_id": instance.project_id,
        "hours": period.hours(instance),
        "flavor": instance.flavor.name,
        "vcpus": instance.flavor.vcpus,
        "memory_mb": instance.flavor.memory_mb,
        "local_gb": instance.flavor.root_gb + instance.flavor.ephemeral_gb,
        "started_at": _iso(instance.launched_at),
        "ended_at": _iso(end),
        "uptime": int((until - (instance.launched_at or until)).total_seconds()),
        "state": "terminated" if end is not None else instance.vm_state.value,
    }


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%S.%f")


def _usage(project_id: str, servers: list[Instance], period: Period, *, detailed: bool) -> dict[str, Any]:
    hours = [(server.flavor, period.hours(server)) for server in servers]
    shown: dict[str, Any] = {
        "tenant_id": project_id,
        "start": _iso(period.start),
        "stop": _iso(period.end),
        "total_hours": sum(time for _flavor, time in hours),
        "total_vcpus_usage": sum(flavor.vcpus * time for flavor, time in hours),
        "total_memory_mb_usage": sum(flavor.memory_mb * time for flavor, time in hours),
        "total_local_gb_usage": sum((flavor.root_gb + flavor.ephemeral_gb) * time for flavor, time in hours),
    }
    if detailed:
        shown["server_usages"] = [_server_usage(server, period) for server in servers]
    return shown


def _answer(request: ApiRequest, key: str, value: Any, path: str, servers: list[Instance]) -> Response:
    body = {key: value}
    last = servers[-1].uuid if servers else None
    if request.version >= (2, 40) and (links := paging.next_link(request, path, servers, last)):
        body[f"{key}_links"] = links
    return Response(200, body)


@handler(query=schemas.LIST, answer=answers.USAGES)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    period = _period(request)
    servers = _servers(request, period, None)
    detailed = types.to_bool(request.param("detailed") or "")
    by_project: dict[str, list[Instance]] = {}
    for server in servers:
        by_project.setdefault(server.project_id, []).append(server)
    usages = [_usage(project, theirs, period, detailed=detailed) for project, theirs in by_project.items()]
    return _answer(request, "tenant_usages", usages, "/os-simple-tenant-usage", servers)


@handler(query=schemas.SHOW, answer=answers.USAGE)
def show(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "show", {"project_id": tenant_id})
    period = _period(request)
    servers = _servers(request, period, tenant_id)
    usage = _usage(tenant_id, servers, period, detailed=True) if servers else {}
    return _answer(request, "tenant_usage", usage, f"/os-simple-tenant-usage/{tenant_id}", servers)
