"""The filters by what their verdicts depend on: whoever keeps verdicts has to know for how long they hold."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.scheduler.filters.base import HostFilter
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.filters.hardware import NUMATopologyFilter, PciPassthroughFilter
from causeway.scheduler.filters.limits import IoOpsFilter, NumInstancesFilter
from causeway.scheduler.filters.other_servers import DifferentHostFilter, SameHostFilter
from causeway.scheduler.filters.server_groups import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter

# What a server that is put on a host changes for those of its kind, and for some servers only.
ROOM = (NumInstancesFilter, NUMATopologyFilter, PciPassthroughFilter)
COMPANY = (ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter, SameHostFilter, DifferentHostFilter)
# How busy a host is at this moment says nothing of later.
PASSING = (IoOpsFilter,)


class Filters:
    """The enabled filters by what they depend on. ``decisive``: what is asked first, as in `explain`."""

    def __init__(self, decisive: Sequence[HostFilter], enabled: Sequence[HostFilter]) -> None:
        first = {each.name for each in decisive}
        changing = (*ROOM, *COMPANY, *PASSING)
        self.decisive = list(decisive)
        self.lasting: list[HostFilter] = [
            each for each in enabled if each.name not in first and not isinstance(each, changing)
        ]
        self.room: list[HostFilter] = [each for each in enabled if isinstance(each, ROOM)]
        self.company: list[HostFilter] = [each for each in enabled if isinstance(each, COMPANY)]


def lasting(enabled: Sequence[HostFilter]) -> list[HostFilter]:
    """Those whose verdict on a host holds for all requests of a kind until the host, or an aggregate, is changed."""
    changing = (*ROOM, *COMPANY, *PASSING, ComputeFilter)
    return [each for each in enabled if not isinstance(each, changing)]
