"""AllHostsFilter."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class AllHostsFilter(HostFilter):
    """Refuses no host. For configurations that name no other filter."""

    def check(self, host: HostState, request: Request) -> Refusal | None:  # noqa: ARG002
        return None
