"""NumInstancesWeigher, IoOpsWeigher, BuildFailureWeigher, HypervisorVersionWeigher: what the host does and is."""

from __future__ import annotations

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher


class NumInstancesWeigher(HostWeigher, of_host_alone=True):
    option = "num_instances_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return float(host.num_instances)


class IoOpsWeigher(HostWeigher, of_host_alone=True):
    option = "io_ops_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return float(host.num_io_ops)


class BuildFailureWeigher(HostWeigher, of_host_alone=True):
    option = "build_failure_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return -float(host.record.failed_builds)


class HypervisorVersionWeigher(HostWeigher, of_host_alone=True):
    option = "hypervisor_version_weight_multiplier"

    def weigh(self, host: HostState, request: Request) -> float:  # noqa: ARG002
        return float(host.record.node.hypervisor_version)
