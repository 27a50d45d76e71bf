"""ComputeFilter."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class ComputeFilter(HostFilter):
    """The compute service must be enabled and up."""

    def check(self, host: HostState, request: Request) -> Refusal | None:  # noqa: ARG002
        service = host.record.service
        if service.disabled:
            return Refusal("is disabled", "are disabled", {"reason": service.disabled_reason or "none given"})
        if not host.is_up:
            seen = "forced down" if service.forced_down else f"{service.last_seen_up or 'never'}"
            return Refusal("is down", "are down", {"last seen up": seen})
        return None
