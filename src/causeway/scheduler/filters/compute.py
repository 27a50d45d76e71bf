"""ComputeFilter."""

from __future__ import annotations

from datetime import datetime, timedelta

from causeway.model.host import FOLDERS_LACK, OTHER_OWNER
from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState

_NEVER = datetime.min


class ComputeFilter(HostFilter):
    """The compute service must be enabled, up, able to write its disks, and the only owner of its guests."""

    def check(self, host: HostState, request: Request) -> Refusal | None:  # noqa: ARG002
        service = host.record.service
        if service.disabled:
            return Refusal("is disabled", "are disabled", {"reason": service.disabled_reason or "none given"})
        if not host.is_up:
            seen = "forced down" if service.forced_down else f"{service.last_seen_up or 'never'}"
            return Refusal("is down", "are down", {"last seen up": seen})
        capabilities = host.record.node.capabilities
        if (lack := capabilities.get(FOLDERS_LACK)) is not None:
            return Refusal("can't write its disks", "can't write their disks", {"reason": str(lack)})
        if (owner := capabilities.get(OTHER_OWNER)) is not None:
            return Refusal("may have another owner", "may have another owner", {"reason": str(owner)})
        return None


def healthy_until(host: HostState, down_time: timedelta) -> datetime:
    """Until when `ComputeFilter` accepts a host for all requests, unless it reports again."""
    service = host.record.service
    if service.disabled or service.forced_down or service.last_seen_up is None:
        return _NEVER
    if any(host.record.node.capabilities.get(key) is not None for key in (FOLDERS_LACK, OTHER_OWNER)):
        return _NEVER
    return service.last_seen_up + down_time
