"""CPUWeigher, RAMWeigher, DiskWeigher: spread by what is free."""

from __future__ import annotations

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher


class CPUWeigher(HostWeigher, of_host_alone=True):
    option = "cpu_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return host.free_vcpus


class RAMWeigher(HostWeigher, of_host_alone=True):
    option = "ram_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return host.free_memory_mb


class DiskWeigher(HostWeigher, of_host_alone=True):
    option = "disk_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return host.free_disk_gb
