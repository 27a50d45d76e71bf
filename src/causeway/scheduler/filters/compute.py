"""ComputeFilter."""

from __future__ import annotations

from datetime import datetime, timedelta

from causeway.model import versions
from causeway.model.host import FOLDERS_LACK
from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState

_NEVER = datetime.min


class ComputeFilter(HostFilter):
    """The compute service must be enabled and up, able to write its disks, and new enough for a move from another cell."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        service = host.record.service
        if service.disabled:
            return Refusal("is disabled", "are disabled", {"reason": service.disabled_reason or "none given"})
        if not host.is_up:
            seen = "forced down" if service.forced_down else f"{service.last_seen_up or 'never'}"
            return Refusal("is down", "are down", {"last seen up": seen})
        lack = host.record.node.capabilities.get(FOLDERS_LACK)
        if lack is not None:
            return Refusal("can't write its disks", "can't write their disks", {"reason": str(lack)})
        cell = request.spec.preferred_cell
        if cell is not None and cell != host.record.cell_uuid and service.version < versions.CROSS_CELL.service:
            return Refusal(
                "is too old for moves between cells",
                "are too old for moves between cells",
                {"service version": str(service.version), "needed": str(versions.CROSS_CELL.service)},
            )
        return None


def healthy_until(host: HostState, down_time: timedelta) -> datetime:
    """Until when `ComputeFilter` accepts a host for all requests, unless it reports again."""
    service = host.record.service
    if service.disabled or service.forced_down or service.last_seen_up is None:
        return _NEVER
    if host.record.node.capabilities.get(FOLDERS_LACK) is not None or service.version < versions.CROSS_CELL.service:
        return _NEVER
    return service.last_seen_up + down_time
