"""The plan of a drain: what would happen to each server, and to all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil

from causeway import errors
from causeway.context import RequestContext
from causeway.drains import packing, paths, schedule, scope, targets
from causeway.drains.paths import Cost, Obstacle
from causeway.drains.schedule import Pace, Transfer
from causeway.drains.scope import Scoped, Tenant
from causeway.model.block_device import is_volume_backed
from causeway.model.drains import Afterwards, DrainRequest, DrainServer, DrainServerState, How, Plan, Shortage, duration
from causeway.model.flavor import Flavor
from causeway.model.holds import PROPERTY, held_until
from causeway.moves.steps.local_disks import refuse_smaller_disks
from causeway.running.services import ConductorServices
from causeway.scheduler.many import AssignedHost, Packing
from causeway.store.api import flavors as flavor_records
from causeway.store.cell.residents import Resident
from causeway.store.database import Database, utcnow

_KEEPS_MEMORY = (How.LIVE, How.NEAR_LIVE)
# Moves that are confirmed when they have arrived. Those that keep the memory need no confirm.
_TO_BE_CONFIRMED = (How.WARM, How.COLD)


@dataclass
class _Planned:
    """Rows of the plan, and the moves for its schedule."""

    rows: dict[str, DrainServer] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)


def plan_of(services: ConductorServices, context: RequestContext, request: DrainRequest) -> Plan:
    """Plans a drain, and changes nothing. Raises BadRequest if the request is invalid, and CellDown if no server can be read."""
    resized = _new_flavors(services.api, request)
    ground = scope.look_around(services.cells, services.conf)
    hosts = targets.hosts_of(ground, request.targets, scope.hosts_of(ground, request.scope))
    scoped = scope.read(services.cells, services.conf, ground, request.scope)
    _refuse_unused(request.flavors, services.api, scoped)

    planned = _Planned({tenant.server.uuid: _row(tenant, resized) for tenant in scoped.tenants})
    free = [tenant for tenant in scoped.tenants if not _blocked_here(planned, tenant, request, resized, scoped)]
    flavors = {tenant.server.uuid: resized.get(tenant.server.flavor.name, tenant.server.flavor) for tenant in free}
    packed, unasked = (
        packing.pack(services, context, free, flavors, hosts, scoped.capabilities) if free else (Packing(), {})
    )
    for tenant in free:
        row = planned.rows[tenant.server.uuid]
        place = packed.places.get(tenant.server.uuid)
        if place is None:
            homeless = packed.homeless.get(tenant.server.uuid)
            _block(row, unasked[row.instance_uuid] if homeless is None else packing.obstacle_of(homeless))
        else:
            _set_way(services, planned, tenant, place, request, scoped)
    shortages = [packing.shortage_of(missing) for missing in packed.missing]
    silent = sorted({*scoped.silent, *packed.silent_cells})
    fits = not packed.homeless
    return _whole_plan(services, request, planned, shortages, fits=fits, notes=_notes(request, scoped, planned, silent))


def _new_flavors(api: Database, request: DrainRequest) -> dict[str, Flavor]:
    """Name of a flavor -> the flavor that its servers are resized to."""
    if not request.flavors:
        return {}
    if request.how in _KEEPS_MEMORY:
        raise errors.BadRequest(
            f"flavors: A flavor can't be changed by a {request.how.replace('_', '-')} move: have servers moved warm or cold."
        )
    known = {flavor.name: flavor for flavor in flavor_records.list_all(api)}
    found = {}
    for old, new in request.flavors.items():
        if new not in known:
            raise errors.BadRequest(f"flavors: There is no flavor {new}.")
        if known[new].disabled:
            raise errors.BadRequest(f"flavors: Flavor {new} is disabled: no server can be resized to it.")
        found[old] = known[new]
    return found


def _refuse_unused(flavors: dict[str, str], api: Database, scoped: Scoped) -> None:
    """Raises BadRequest for flavors that neither exist nor have servers. (A deleted flavor may still have some.)"""
    if not flavors:
        return
    known = {flavor.name for flavor in flavor_records.list_all(api)}
    known |= {tenant.server.flavor.name for tenant in scoped.tenants}
    for old in flavors:
        if old not in known:
            raise errors.BadRequest(f"flavors: There is no flavor {old}, and no server has one of that name.")


def _row(tenant: Tenant, resized: dict[str, Flavor]) -> DrainServer:
    server = tenant.server
    new = resized.get(server.flavor.name)
    changes = new is not None and new.flavorid != server.flavor.flavorid
    return DrainServer(
        drain_id="",
        instance_uuid=server.uuid,
        name=server.name,
        owner_project=server.project_id,
        source_cell=tenant.cell_name,
        source_host=server.host or "",
        flavor=server.flavor.name,
        new_flavor=new.name if new is not None and changes else None,
        bytes=0 if _goes_as_records(server) else paths.local_gib(server, server.flavor) << 30,
        memory_mb=server.flavor.memory_mb,
    )


def _goes_as_records(server: Resident) -> bool:
    return paths.goes_as_records(server.vm_state, server.host)


def _blocked_here(
    planned: _Planned, tenant: Tenant, request: DrainRequest, resized: dict[str, Flavor], scoped: Scoped
) -> bool:
    """Whether a server can't leave its host, whatever the target. If so, notes why in its row."""
    server, row = tenant.server, planned.rows[tenant.server.uuid]
    obstacle = paths.obstacle_here(
        server,
        how=request.how,
        resized=row.new_flavor is not None,
        host_is_down=server.host in scoped.down,
        host_is_dead=server.host in scoped.dead,
        can=scoped.capabilities.get(server.host or "", {}),
    )
    if obstacle is None and row.new_flavor is not None:
        obstacle = _too_small(tenant, resized[server.flavor.name])
    if obstacle is None:
        try:
            row.not_before = held_until(server.metadata)
        except errors.BadRequest as unreadable:
            obstacle = Obstacle(unreadable.message, f"Have its owner set or unset its property {PROPERTY}.")
    if obstacle is not None:
        _block(row, obstacle)
    return obstacle is not None


def _too_small(tenant: Tenant, flavor: Flavor) -> Obstacle | None:
    server = tenant.server
    help_ = f"Map {server.flavor.name} to a flavor with disks as large as it has."
    if not flavor.root_gb and server.flavor.root_gb and not is_volume_backed(server.devices):
        return Obstacle(f"Flavor {flavor.name} has no root disk, and the server has one on its host.", help_)
    try:
        refuse_smaller_disks(server.flavor, flavor, server.devices)
    except errors.OperationFailed as refusal:
        return Obstacle(f"{refusal.message} ({refusal.details})", help_)
    return None


def _set_way(
    services: ConductorServices,
    planned: _Planned,
    tenant: Tenant,
    place: AssignedHost,
    request: DrainRequest,
    scoped: Scoped,
) -> None:
    server, row = tenant.server, planned.rows[tenant.server.uuid]
    can = scoped.capabilities.get(server.host or "", {})
    target_can = scoped.capabilities.get(place.host, {})
    how = paths.way(
        services.conf,
        server,
        how=request.how,
        resized=row.new_flavor is not None,
        crosses=place.cell_uuid != tenant.cell_uuid,
        host_is_dead=server.host in scoped.dead,
        can=can,
        target_can=target_can,
    )
    if isinstance(how, Obstacle):
        _block(row, how)
        return
    if how is How.RECORDS:
        _set_cell(tenant, place, row)
        return
    cost = paths.cost(server, how, paths.rate_of(services.conf), can, target_can)
    row.how, row.target_cell, row.target_host = how, place.cell_name, place.host
    row.seconds, row.pause = round(cost.seconds, 1), round(cost.pause, 1)
    planned.transfers.append(_transfer(row, cost))


def _set_cell(tenant: Tenant, place: AssignedHost, row: DrainServer) -> None:
    """Gives a server that moves as records its cell. This takes no time or capacity that the schedule must count."""
    row.how, row.target_cell, row.seconds, row.pause = How.RECORDS, place.cell_name, 0.0, 0.0
    if place.cell_uuid == tenant.cell_uuid:
        row.state = DrainServerState.PASSED_OVER
        row.why = "Only its records are in its cell, which is among the targets: it stays there."


def _transfer(row: DrainServer, cost: Cost) -> Transfer:
    return Transfer(
        id=row.instance_uuid,
        source=row.source_host,
        target=row.target_host or "",
        cells=(row.source_cell, row.target_cell or ""),
        mib=cost.mib,
        seconds=cost.beside,
        not_before=row.not_before,
    )


def _block(row: DrainServer, obstacle: Obstacle) -> None:
    row.state, row.why, row.help = DrainServerState.BLOCKED, obstacle.why, obstacle.help


def _whole_plan(
    services: ConductorServices,
    request: DrainRequest,
    planned: _Planned,
    shortages: list[Shortage],
    *,
    fits: bool,
    notes: list[str],
) -> Plan:
    rows = list(planned.rows.values())
    going = [row for row in rows if row.state is DrainServerState.PENDING]
    begin = utcnow().replace(microsecond=0)
    pace = Pace(request.limits, paths.rate_of(services.conf), tuple(request.windows), request.first)
    seconds = schedule.simulate(planned.transfers, pace, begin).makespan
    bound = schedule.bound_of(planned.transfers, pace, begin, seconds)
    plan = Plan(
        servers=rows,
        began_at=begin,
        movable=len(going),
        blocked=sum(row.state is DrainServerState.BLOCKED for row in rows),
        bytes=sum(row.bytes for row in going),
        seconds=float(ceil(seconds)),
        bound=bound.what if bound is not None else None,
        doubled=float(ceil(bound.seconds)) if bound is not None else None,
        fits=fits,
        shortages=shortages,
        notes=notes,
    )
    if going or not plan.blocked:
        plan.ends_at = begin + timedelta(seconds=plan.seconds) + _until_confirmed(request, going)
    if request.deadline is not None:
        plan.meets_deadline = not plan.blocked and plan.ends_at is not None and plan.ends_at <= _utc(request.deadline)
    plan.summary = _summary(plan, request)
    return plan


def _until_confirmed(request: DrainRequest, going: Iterable[DrainServer]) -> timedelta:
    waits = request.afterwards is Afterwards.CONFIRM_LATER and any(row.how in _TO_BE_CONFIRMED for row in going)
    return timedelta(hours=request.confirm_after or 0.0) if waits else timedelta()


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _summary(plan: Plan, request: DrainRequest) -> str:
    total = plan.movable + plan.blocked
    if not total:
        return "There is no server to be moved."
    if not plan.movable:
        return f"None of {_count(total, 'server')} can go{_lacking(plan)}."
    who = f"All {total} servers" if plan.movable == total > 1 else f"{plan.movable} of {_count(total, 'server')}"
    end = f"; the end would be {plan.ends_at:%Y-%m-%d %H:%M} UTC" if plan.ends_at is not None else ""
    goes = f"{who} can go: {plan.bytes / (1 << 30):.0f} GiB in {duration(plan.seconds)}{end}"
    in_time = ""
    if request.deadline is not None:
        late = plan.ends_at is not None and plan.ends_at > _utc(request.deadline)
        but = " but for those that can't go" if plan.blocked else ""
        in_time = f", too late for {_utc(request.deadline):%Y-%m-%d %H:%M} UTC" if late else f", in time{but}"
    return f"{goes}{in_time}{_lacking(plan)}."


def _lacking(plan: Plan) -> str:
    return "".join(f"; {shortage.sentence}" for shortage in plan.shortages)


def _notes(request: DrainRequest, scoped: Scoped, planned: _Planned, silent: list[str]) -> list[str]:
    notes = [
        f"Cell {name} does not answer: its hosts are no targets, and nothing is known of servers that it may have."
        for name in silent
    ]
    locked = sum(tenant.server.locked for tenant in scoped.tenants)
    if locked:
        notes.append(
            f"{_count(locked, 'server')} of these {'is' if locked == 1 else 'are'} locked, which does not stop a drain."
        )
    held = [row.not_before for row in planned.rows.values() if row.not_before is not None and row.not_before > utcnow()]
    if held:
        notes.append(
            f"The {'owner of' if len(held) == 1 else 'owners of'} {_count(len(held), 'server')} asked to wait, at the longest"
            f" until {max(held):%Y-%m-%d %H:%M} UTC."
        )
    ways = Counter(row.how for row in planned.rows.values())
    waiting = sum(ways[how] for how in _TO_BE_CONFIRMED)
    if waiting and request.afterwards is Afterwards.OWNERS:
        notes.append(
            f"{_count(waiting, 'server')} will wait until the owner confirms: what that takes is not in the estimate."
        )
    if ways[How.NEAR_LIVE]:
        notes.append(
            "To another cell a guest goes live where hypervisors reach one another; planned is that it stands still (near-live)."
        )
    return notes


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
