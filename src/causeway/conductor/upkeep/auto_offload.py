"""Offloads servers that have been shelved for ``shelved_offload_time`` seconds."""

from __future__ import annotations

from causeway.conductor.upkeep.overdue import each_overdue
from causeway.context import admin_context
from causeway.model import operations, server_actions
from causeway.model.instance import Instance
from causeway.model.shelved import SINCE
from causeway.model.states import VmState
from causeway.operations.shelve import ShelveMemory
from causeway.requests.asking import ask
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices


def interval(services: ConductorServices) -> float:
    """Returns the seconds between two checks; 0 if shelved servers are offloaded at once, or never."""
    return float(services.conf.shelved_poll_interval) if services.conf.shelved_offload_time > 0 else 0.0


def offload_shelved(services: ConductorServices, conductor: ConductorClient) -> None:
    """Requests the offload of every server that has been shelved for longer than that, in every cell that answers."""
    asks = Requests(services.conf, services.api, services.cells, conductor)

    def offload(instance: Instance, cell_uuid: str) -> None:
        context = admin_context(project_id=instance.project_id)
        action, recipe = server_actions.SHELVE_OFFLOAD, operations.SHELVE_OFFLOAD
        ask(asks, context, instance, cell_uuid, action, recipe, ShelveMemory())

    each_overdue(
        services,
        "Offloading shelved servers",
        offload,
        state=VmState.SHELVED,
        since=SINCE,
        seconds=services.conf.shelved_offload_time,
    )
