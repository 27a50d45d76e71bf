"""Ends rescues that are older than ``rescue_timeout`` seconds."""

from __future__ import annotations

from causeway.conductor.upkeep.overdue import each_overdue
from causeway.context import admin_context
from causeway.model import operations, rescue, server_actions
from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.operations.rescue import UnrescueMemory
from causeway.requests.asking import ask
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices

# Seconds between two checks.
LONGEST = 60.0


def interval(services: ConductorServices) -> float:
    """Returns the seconds between two checks; 0 if servers stay rescued until their users unrescue them."""
    return min(float(services.conf.rescue_timeout), LONGEST)


def unrescue(services: ConductorServices, conductor: ConductorClient) -> None:
    """Requests the unrescue of every server that was rescued longer ago, in every cell that answers."""
    asks = Requests(services.conf, services.api, services.cells, conductor)

    def end(instance: Instance, cell_uuid: str) -> None:
        context = admin_context(project_id=instance.project_id)
        memory = UnrescueMemory(rescue.of_record(instance.system_metadata))
        ask(asks, context, instance, cell_uuid, server_actions.UNRESCUE, operations.UNRESCUE, memory)

    each_overdue(
        services,
        "Ending rescues",
        end,
        state=VmState.RESCUED,
        since=rescue.SINCE,
        seconds=services.conf.rescue_timeout,
    )
