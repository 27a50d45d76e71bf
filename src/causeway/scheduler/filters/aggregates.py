"""Filters on the metadata of the host aggregates that a host is in."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.filters.operators import matches
from causeway.scheduler.host_state import HostState
from causeway.scheduler.resources import tenants_of

SCOPE = "aggregate_instance_extra_specs"
# Extra specs without a scope that mean something else.
_OTHERS = ("group_policy", "hide_hypervisor_id")


class AggregateInstanceExtraSpecsFilter(HostFilter):
    """Extra specs ``aggregate_instance_extra_specs:key`` (or without any scope) must match an aggregate of the host.

    This is how flavors are tied to hosts: ``aggregate_instance_extra_specs:gen=1`` to the aggregates with gen=1.
    """

    def check(self, host: HostState, request: Request) -> Refusal | None:
        for key, wanted in sorted(request.spec.flavor.extra_specs.items()):
            scope, _colon, name = key.rpartition(":")
            if scope not in ("", SCOPE) or key in _OTHERS:
                continue
            found = host.aggregate_values(name)
            if not any(matches(value, wanted) for value in found):
                return Refusal(
                    f"lacks the aggregate property {name}={wanted}",
                    f"lack the aggregate property {name}={wanted}",
                    {"wants": wanted, "has": ", ".join(sorted(found)) or "nothing"},
                )
        return None


class AggregateMultiTenancyIsolation(HostFilter):
    """Hosts of an aggregate with filter_tenant_id metadata only serve the projects named there."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        tenants = {tenant for aggregate in host.aggregates for tenant in tenants_of(aggregate)}
        if tenants and request.spec.project_id not in tenants:
            return Refusal(
                "is kept for other projects",
                "are kept for other projects",
                {"project": request.spec.project_id, "kept for": ", ".join(sorted(tenants))},
            )
        return None
