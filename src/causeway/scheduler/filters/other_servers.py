"""Filters for the scheduler hints same_host and different_host, which name other servers."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class SameHostFilter(HostFilter):
    """The host must have one of the servers in the hint ``same_host``."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        named = request.spec.scheduler_hints.get("same_host", [])
        if not named or any(request.instance_hosts.get(uuid) == host.host for uuid in named):
            return None
        return Refusal("has none of the servers to be with", "have none of the servers to be with")


class DifferentHostFilter(HostFilter):
    """The host must have none of the servers in the hint ``different_host``."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        named = request.spec.scheduler_hints.get("different_host", [])
        there = [uuid for uuid in named if request.instance_hosts.get(uuid) == host.host]
        if not there:
            return None
        return Refusal(
            "has a server to be kept away from",
            "have servers to be kept away from",
            {"servers": ", ".join(there)},
        )
