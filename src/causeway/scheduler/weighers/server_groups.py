"""ServerGroupSoftAffinityWeigher, ServerGroupSoftAntiAffinityWeigher: groups that would rather be together or apart."""

from __future__ import annotations

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher


class ServerGroupSoftAffinityWeigher(HostWeigher, of_host_alone=False):
    option = "soft_affinity_weight_multiplier"

    def concerns(self, request: Request) -> bool:
        return bool(request.group_hosts)

    def weigh(self, host: HostState, request: Request) -> float:
        return float(_members(host, request, "soft-affinity"))


class ServerGroupSoftAntiAffinityWeigher(HostWeigher, of_host_alone=False):
    option = "soft_anti_affinity_weight_multiplier"

    def concerns(self, request: Request) -> bool:
        return bool(request.group_hosts)

    def weigh(self, host: HostState, request: Request) -> float:
        return -float(_members(host, request, "soft-anti-affinity"))


def _members(host: HostState, request: Request, policy: str) -> int:
    group = request.spec.server_group
    return request.group_hosts.get(host.host, 0) if group is not None and group.policy == policy else 0
