"""The conditions of the request itself; always on, always first."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class RequestedDestination(HostFilter):
    """The requested or forced host, hosts that are left out, the cell to stay in or to leave, and disabled cells."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        spec, node = request.spec, host.record.node
        if host.record.cell_disabled:
            return Refusal("is in a cell that is disabled", "are in cells that are disabled")
        if host.host in spec.ignore_hosts:
            return Refusal("is left out of this request", "are left out of this request")
        if spec.force_hosts and host.host not in spec.force_hosts:
            return Refusal("is not the host that was asked for", "are not the host that was asked for")
        wanted = spec.requested_destination
        if wanted is None:
            return None
        if wanted.host is not None and host.host != wanted.host:
            return Refusal("is not the host that was asked for", "are not the host that was asked for")
        if wanted.node is not None and wanted.node not in (node.uuid, node.hypervisor_hostname):
            return Refusal("is not the node that was asked for", "are not the node that was asked for")
        if wanted.cell is not None and not wanted.allow_cross_cell_move and host.cell_uuid != wanted.cell:
            return Refusal(
                "is in another cell",
                "are in another cell",
                {"cell": host.record.cell_name, "moves across cells": "not allowed"},
            )
        if wanted.leave_cell is not None and host.cell_uuid == wanted.leave_cell:
            return Refusal(
                "is in the cell that the server is to leave",
                "are in the cell that the server is to leave",
                {"cell": host.record.cell_name},
            )
        return None
