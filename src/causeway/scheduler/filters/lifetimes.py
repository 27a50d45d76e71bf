"""Groups filters by the facts that their verdicts depend on. These decide how long a verdict stays valid."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.scheduler.filters.base import HostFilter
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.filters.hardware import NUMATopologyFilter, PciPassthroughFilter
from causeway.scheduler.filters.limits import IoOpsFilter, NumInstancesFilter
from causeway.scheduler.filters.other_servers import DifferentHostFilter, SameHostFilter
from causeway.scheduler.filters.server_groups import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter

# A server that is put on a host changes ROOM for all servers of its kind, and COMPANY for some servers.
ROOM = (NumInstancesFilter, NUMATopologyFilter, PciPassthroughFilter)
COMPANY = (ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter, SameHostFilter, DifferentHostFilter)
# Verdicts on how busy a host is hold only for the moment.
PASSING = (IoOpsFilter,)


class Filters:
    """The enabled filters, grouped by the facts that they depend on. ``decisive``: see `explain`; they are asked first."""

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
    """The filters whose verdict on a host holds for all requests of a kind until the host, or an aggregate, changes."""
    changing = (*ROOM, *COMPANY, *PASSING, ComputeFilter)
    return [each for each in enabled if not isinstance(each, changing)]
