"""Filters that keep hosts from getting too busy."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class NumInstancesFilter(HostFilter):
    """The host must have fewer than ``max_instances_per_host`` servers."""

    def check(self, host: HostState, request: Request) -> Refusal | None:  # noqa: ARG002
        most = self.options.max_instances_per_host
        if host.num_instances < most:
            return None
        return Refusal(
            "has as many servers as it may have",
            "have as many servers as they may have",
            {"servers": str(host.num_instances), "allowed": str(most)},
        )


class IoOpsFilter(HostFilter):
    """The host must have fewer than ``max_io_ops_per_host`` builds, moves and snapshots at the same time."""

    def check(self, host: HostState, request: Request) -> Refusal | None:  # noqa: ARG002
        most = self.options.max_io_ops_per_host
        if host.num_io_ops < most:
            return None
        return Refusal(
            "is too busy with disks",
            "are too busy with disks",
            {"operations": str(host.num_io_ops), "allowed": str(most)},
        )
