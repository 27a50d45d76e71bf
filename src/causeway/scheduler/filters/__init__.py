"""Filters: which of the hosts that have room may serve a request. Names as in Nova."""

from __future__ import annotations

from oslo_config.cfg import ConfigOpts

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.aggregates import AggregateInstanceExtraSpecsFilter, AggregateMultiTenancyIsolation
from causeway.scheduler.filters.all_hosts import AllHostsFilter
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.filters.compute_capabilities import ComputeCapabilitiesFilter
from causeway.scheduler.filters.hardware import NUMATopologyFilter, PciPassthroughFilter
from causeway.scheduler.filters.image_properties import ImagePropertiesFilter
from causeway.scheduler.filters.isolated_hosts import IsolatedHostsFilter
from causeway.scheduler.filters.limits import IoOpsFilter, NumInstancesFilter
from causeway.scheduler.filters.other_servers import DifferentHostFilter, SameHostFilter
from causeway.scheduler.filters.requested import RequestedDestination
from causeway.scheduler.filters.server_groups import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from causeway.scheduler.host_state import HostState

AVAILABLE: dict[str, type[HostFilter]] = {
    filter_class.__name__: filter_class
    for filter_class in (
        AggregateInstanceExtraSpecsFilter,
        AggregateMultiTenancyIsolation,
        AllHostsFilter,
        ComputeCapabilitiesFilter,
        ComputeFilter,
        DifferentHostFilter,
        ImagePropertiesFilter,
        IoOpsFilter,
        IsolatedHostsFilter,
        NUMATopologyFilter,
        NumInstancesFilter,
        PciPassthroughFilter,
        SameHostFilter,
        ServerGroupAffinityFilter,
        ServerGroupAntiAffinityFilter,
    )
}


def enabled_filters(conf: ConfigOpts) -> list[HostFilter]:
    """The filters of ``[filter_scheduler]enabled_filters`` in their order. Raises ValueError for an unknown one."""
    unknown = [name for name in conf.filter_scheduler.enabled_filters if name not in AVAILABLE]
    if unknown:
        raise ValueError(
            f"[filter_scheduler] enabled_filters names {', '.join(unknown)}; there are {', '.join(sorted(AVAILABLE))}"
        )
    return [AVAILABLE[name](conf) for name in conf.filter_scheduler.enabled_filters]


def first_refusal(filters: list[HostFilter], host: HostState, request: Request) -> Refusal | None:
    """The refusal of the first filter that refuses the host; None if none does."""
    for host_filter in filters:
        refusal = host_filter.check(host, request)
        if refusal is not None:
            refusal.filter = host_filter.name
            return refusal
    return None


__all__ = ["AVAILABLE", "HostFilter", "Request", "RequestedDestination", "enabled_filters", "first_refusal"]
