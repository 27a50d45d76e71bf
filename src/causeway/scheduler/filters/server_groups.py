"""Filters for server groups with the policies affinity and anti-affinity.

Members in every cell count, and a member that is being moved counts on both hosts. The server itself never counts: it may stay
where it is, and an only member may go anywhere. Within one scheduler, requests of one group take turns; for those of different
schedulers, the conductor checks again when it claims the host (`causeway.hosts.groups`).
"""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class ServerGroupAntiAffinityFilter(HostFilter):
    """At most ``max_server_per_host`` (a rule of the group, default 1) members on a host."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        group = request.spec.server_group
        if group is None or group.policy != "anti-affinity" or host.host == request.own_host:
            return None
        members = request.group_hosts.get(host.host, 0)
        if members >= group.max_server_per_host:
            return Refusal(
                "has members of the server's anti-affinity group already",
                "have members of the server's anti-affinity group already",
                {"members there": str(members), "allowed": str(group.max_server_per_host)},
            )
        return None


class ServerGroupAffinityFilter(HostFilter):
    """The host must have other members, if there are any."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        group = request.spec.server_group
        if group is None or group.policy != "affinity" or not request.group_hosts:
            return None
        if host.host not in request.group_hosts:
            return Refusal(
                "is not where the server's affinity group is",
                "are not where the server's affinity group is",
                {"members are on": ", ".join(sorted(request.group_hosts))},
            )
        return None
