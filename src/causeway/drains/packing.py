"""Has the scheduler find hosts for all servers of a drain together, in one call."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway import errors
from causeway.context import RequestContext
from causeway.drains.paths import Obstacle, goes_as_records
from causeway.drains.scope import Tenant
from causeway.model.drains import Shortage
from causeway.model.flavor import Flavor
from causeway.model.host import STORAGE
from causeway.moves.destination import ask_for_flavor, keeps_zone
from causeway.running.services import ConductorServices
from causeway.scheduler.diagnose import PLACEMENT
from causeway.scheduler.many import GroupPlaces, Homeless, Missing, Mover, Packing, PackRequest
from causeway.scheduler.request import Destination, RequestedGroup, RequestSpec
from causeway.scheduler.resources import disk_gb_of
from causeway.store import group_places
from causeway.store.api import groups, mappings
from causeway.store.cell.residents import Resident

_HINTS = ("same_host", "different_host")
_GIB = 1024
_NAMES = {"VCPU": "vCPUs", "PCPU": "dedicated CPUs", "MEMORY_MB": "memory", "DISK_GB": "disk"}
# The filter that refused -> what would help. The first entry that any host named is shown.
_HELP = {
    "ComputeFilter": "Enable the targets' hosts and bring those up that are down.",
    "AggregateInstanceExtraSpecsFilter": "Resize it to a flavor that is made for the targets (flavors), or name other targets.",
    "ComputeCapabilitiesFilter": "Resize it to a flavor that is made for the targets (flavors), or name other targets.",
    "AggregateMultiTenancyIsolation": "Name targets that are open to its project.",
    "ImagePropertiesFilter": "Name targets that can run its image.",
    "IsolatedHostsFilter": "Name targets that are meant for its image.",
    "ServerGroupAntiAffinityFilter": "Name more targets, or let its group have more servers on a host.",
    "ServerGroupAffinityFilter": "Its group is bound to stay together, and servers go one by one: delete the group (its servers"
    " continue).",
    "SameHostFilter": "It asked to be with servers that are elsewhere: name their hosts as targets.",
    "DifferentHostFilter": "It asked to be kept away from servers that are there: name more targets.",
    "NumInstancesFilter": "Name more targets, or raise max_instances_per_host.",
    "NUMATopologyFilter": "Name targets with CPUs and memory free in the cells that it asks for, or another flavor (flavors).",
    "PciPassthroughFilter": "Name targets with the devices that it asks for, or another flavor (flavors).",
    PLACEMENT: "Name other targets, or resize it to a flavor that they serve (flavors).",
}
_NAME_TARGETS = "Name other targets."


def pack(
    services: ConductorServices,
    context: RequestContext,
    tenants: list[Tenant],
    flavors: dict[str, Flavor],
    hosts: set[str],
    capabilities: dict[str, dict[str, Any]],
) -> tuple[Packing, dict[str, Obstacle]]:
    """Returns a place for each server, and obstacles of servers without a request.

    ``flavors``: server -> its new flavor. ``capabilities``: of the hosts.
    """
    request, unasked = _request(services, tenants, flavors, capabilities)
    request.hosts = sorted(hosts)
    return services.scheduler.pack(context, request=request), unasked


def obstacle_of(homeless: Homeless) -> Obstacle:
    """Why a server has no place, in the words of `explain`."""
    why = f"{homeless.why[:1].upper()}{homeless.why[1:]}."
    lack = homeless.lack
    if lack is not None:
        what = _amount(lack.resource, lack.missing)
        return Obstacle(
            why, f"Free {what} on {lack.host}, name more targets, or resize it to a smaller flavor (flavors)."
        )
    return Obstacle(why, next((_HELP[name] for name in homeless.filters if name in _HELP), _NAME_TARGETS))


def shortage_of(missing: Missing) -> Shortage:
    where = missing.cells[0] if len(missing.cells) == 1 else f"the targets ({', '.join(missing.cells)})"
    lacks = "lacks" if len(missing.cells) == 1 else "lack"
    count = f"{missing.servers} {'server' if missing.servers == 1 else 'servers'}"
    sentence = f"{where} {lacks} {_amount(missing.resource, missing.amount)} for {count}"
    return Shortage(", ".join(missing.cells), missing.resource, missing.amount, missing.servers, sentence)


def _amount(resource: str, amount: int) -> str:
    name = _NAMES.get(resource, resource)
    if resource == "MEMORY_MB":
        return f"{amount / _GIB:.1f} GiB of {name}".replace(".0 ", " ") if amount >= _GIB else f"{amount} MiB of {name}"
    if resource == "DISK_GB":
        return f"{amount} GiB of {name}"
    return f"{amount} {name}"


def _request(
    services: ConductorServices,
    tenants: list[Tenant],
    flavors: dict[str, Flavor],
    capabilities: dict[str, dict[str, Any]],
) -> tuple[PackRequest, dict[str, Obstacle]]:
    uuids = [tenant.server.uuid for tenant in tenants]
    stored = mappings.get_specs(services.api, uuids)
    found = _groups(services, uuids)
    of_server = {uuid: group.group.uuid for group in found.values() for uuid in _members(group)}
    request = PackRequest(specs=[], movers=[], hosts=[], groups=found)
    numbers: dict[bytes, int] = {}
    unasked: dict[str, Obstacle] = {}
    named: set[str] = set()
    for tenant in tenants:
        server, uuid = tenant.server, tenant.server.uuid
        if uuid not in stored:
            unasked[uuid] = Obstacle("What it asked for when it was made is not known.", "Ask the audit about it.")
            continue
        spec = _spec(services, tenant, stored[uuid])
        spec.source_storage = capabilities.get(server.host or "", {}).get(STORAGE)
        if spec.source_storage is not None:
            spec.source_disk_gb = disk_gb_of(server.flavor, is_volume_backed=spec.is_volume_backed, image=spec.image)
        key = msgspec.json.encode((spec, flavors[uuid].flavorid, flavors[uuid].extra_specs, server.port_devices))
        if key not in numbers:
            try:
                ask_for_flavor(services.conf, spec, flavors[uuid], server.port_devices)
            except errors.BadRequest as contradiction:
                unasked[uuid] = Obstacle(contradiction.message, "Give it another flavor (flavors).")
                continue
            numbers[key] = len(request.specs)
            request.specs.append(spec)
            named |= {each for hint in _HINTS for each in spec.scheduler_hints.get(hint, [])}
        request.movers.append(_mover(server, numbers[key], of_server.get(uuid)))
    if named:
        places = group_places.look_up(services.cells, named).hosts
        request.instance_hosts = {uuid: hosts[0] for uuid, hosts in places.items() if hosts}
    return request, unasked


def _mover(server: Resident, spec: int, group: str | None) -> Mover:
    takes_room = not goes_as_records(server.vm_state, server.host)
    return Mover(server.uuid, spec, server.host or "", group, takes_room)


def _spec(services: ConductorServices, tenant: Tenant, stored: dict[str, object]) -> RequestSpec:
    """Returns the request spec of a server for a host in any cell, without the flavor."""
    spec = RequestSpec.from_persisted(stored)
    spec.instance_uuid = spec.user_id = ""
    spec.server_group, spec.num_instances = None, 1
    spec.flavor = tenant.server.flavor
    spec.requested_destination = Destination(cell=tenant.cell_uuid, allow_cross_cell_move=True)
    has_volumes = any(device.is_volume for device in tenant.server.devices)
    if spec.availability_zone is None and keeps_zone(services.conf, names_host=True, has_volumes=lambda: has_volumes):
        spec.availability_zone = tenant.server.zone
    return spec


def _groups(services: ConductorServices, uuids: list[str]) -> dict[str, GroupPlaces]:
    """The groups of these servers, with the places of all members, including those that stay."""
    known = groups.of_servers(services.api, uuids)
    places = group_places.look_up(services.cells, {uuid for group in known for uuid in group.members}).hosts
    found = {}
    for group in known:
        members: dict[str, list[str]] = {}
        for uuid in group.members:
            for host in places.get(uuid, []):
                members.setdefault(host, []).append(uuid)
        found[group.uuid] = GroupPlaces(RequestedGroup(group.uuid, group.policy, group.rules), members)
    return found


def _members(group: GroupPlaces) -> set[str]:
    return {uuid for there in group.members.values() for uuid in there}
