"""ComputeCapabilitiesFilter."""

from __future__ import annotations

import json
from typing import Any

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.filters.operators import matches
from causeway.scheduler.host_state import HostState

SCOPE = "capabilities"
# Facts of the node itself that extra specs may name besides its capabilities.
_NODE_FACTS = (
    "hypervisor_type",
    "hypervisor_version",
    "hypervisor_hostname",
    "cpu_info",
    "host_ip",
    "vcpus",
    "supported_instances",
)


class ComputeCapabilitiesFilter(HostFilter):
    """Extra specs ``capabilities:a:b`` must match what the host's driver reports.

    Those without any scope must match if the host reports such a thing; if not, they are not for this filter.
    """

    def check(self, host: HostState, request: Request) -> Refusal | None:
        for key, wanted in sorted(request.spec.flavor.extra_specs.items()):
            scope = key.split(":")
            if len(scope) > 1:
                if scope[0] != SCOPE:
                    continue
                del scope[0]
            found = _lookup(host, scope)
            if found is None and ":" not in key:
                continue
            if found is None or not matches(found, wanted):
                name = ":".join(scope)
                return Refusal(
                    f"lacks the capability {name} {wanted}",
                    f"lack the capability {name} {wanted}",
                    {"wants": wanted, "has": "nothing" if found is None else found},
                )
        return None


def _lookup(host: HostState, path: list[str]) -> str | None:
    node = host.record.node
    facts: dict[str, Any] = {name: getattr(node, name) for name in _NODE_FACTS} | node.capabilities
    value: Any = facts
    for name in path:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value if isinstance(value, str) else str(value)
