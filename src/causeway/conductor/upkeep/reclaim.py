"""Deletes servers that were soft-deleted at least ``reclaim_instance_interval`` seconds ago."""

from __future__ import annotations

from causeway.conductor.upkeep.overdue import each_overdue
from causeway.context import admin_context
from causeway.model.instance import Instance
from causeway.model.soft_deleted import SINCE
from causeway.model.states import VmState
from causeway.operations.requests import ask_for_delete
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices

# Seconds between two checks.
LONGEST = 60.0


def interval(services: ConductorServices) -> float:
    """Returns the seconds between two checks; 0 if servers are deleted at once."""
    return min(float(services.conf.reclaim_instance_interval), LONGEST)


def reclaim(services: ConductorServices, conductor: ConductorClient) -> None:
    """Requests the delete of every server that was soft-deleted longer ago, in every cell that answers."""
    asks = Requests(services.conf, services.api, services.cells, conductor)

    def delete(instance: Instance, cell_uuid: str) -> None:
        ask_for_delete(asks, admin_context(project_id=instance.project_id), instance, cell_uuid)

    each_overdue(
        services,
        "Reclaiming deleted servers",
        delete,
        state=VmState.SOFT_DELETED,
        since=SINCE,
        seconds=services.conf.reclaim_instance_interval,
    )
