"""The late check of server groups: whether a server may still go to its chosen host.

The scheduler chose the host by what the databases said then, but another member may have been on its way to it (bug 1821755;
Nova has no late check across cells). Computes have no database, so the check is here, under a lock of the group in the API
database. So it has no races between cells, conductors and schedulers. Only servers in groups with a hard policy need it.
"""

from __future__ import annotations

from causeway import errors
from causeway.running.services import ConductorServices
from causeway.scheduler.request import RequestedGroup
from causeway.store import group_places
from causeway.store.api import group_claims, groups

HARD = ("affinity", "anti-affinity")


def claim_host(services: ConductorServices, group: RequestedGroup | None, instance_uuid: str, host: str) -> None:
    """Claims a host for a member of a group. Call `release` when the server's record names the host, or the operation failed.

    Raises ClaimRefused if members that are there, or claimed it before, forbid it.
    """
    if group is None or group.policy not in HARD:
        return
    # In this order: a member that has released its claim by now has recorded its host.
    on_their_way = group_claims.take(services.api, group.uuid, instance_uuid, host)
    if on_their_way is None:
        return
    members = set(groups.get(services.api, group.uuid).members) - {instance_uuid}
    places = group_places.look_up(services.cells, members)
    by_host = places.by_host()
    for uuid, place in on_their_way.items():
        if uuid in members:
            by_host.setdefault(place, set()).add(uuid)
    refusal = _refusal(group, host, by_host, places.unknown)
    if refusal is not None:
        release(services, group, instance_uuid)
        raise errors.ClaimRefused(refusal, details=f"host {host}; members are on {_shown(by_host)}")


def release(services: ConductorServices, group: RequestedGroup | None, instance_uuid: str) -> None:
    """Releases the claim of a server, if it has one."""
    if group is not None and group.policy in HARD:
        group_claims.release(services.api, instance_uuid)


def _refusal(group: RequestedGroup, host: str, by_host: dict[str, set[str]], unknown: set[str]) -> str | None:
    if group.policy == "anti-affinity":
        if len(by_host.get(host, ())) < group.max_server_per_host:
            return None
        return "Anti-affinity server group policy was violated: the chosen host has members of the group by now."
    if by_host and host not in by_host:
        return "Affinity server group policy was violated: the members of the group are on another host by now."
    if not by_host and unknown:
        return "The server's affinity group has members in a cell that does not answer, so their hosts are unknown."
    return None


def _shown(by_host: dict[str, set[str]]) -> str:
    return ", ".join(f"{host} ({len(uuids)})" for host, uuids in sorted(by_host.items())) or "no host"
