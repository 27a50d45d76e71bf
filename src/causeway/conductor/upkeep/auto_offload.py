"""Removes servers from their hosts that were shelved for ``shelved_offload_time`` seconds."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from causeway import errors
from causeway.context import admin_context
from causeway.model import operations, server_actions
from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.operations.requests import ask
from causeway.operations.shelve import SINCE, ShelveMemory
from causeway.parts.requests import Requests, RequestServices
from causeway.parts.services import ConductorServices
from causeway.rpc.conductor import ConductorClient
from causeway.store.cell import instances
from causeway.store.database import utcnow


def interval(services: ConductorServices) -> float:
    """0 if servers are offloaded at once, or never."""
    return float(services.conf.shelved_poll_interval) if services.conf.shelved_offload_time > 0 else 0.0


def offload_shelved(services: ConductorServices, conductor: ConductorClient) -> None:
    """Asks for the offloading of every server that is shelved for longer than that, in every cell that answers."""
    before = utcnow() - timedelta(seconds=services.conf.shelved_offload_time)
    table = instances.TABLE
    query = table.select().where(
        table.c.vm_state == VmState.SHELVED.value, table.c.task_state.is_(None), table.c.deleted.is_(False)
    )

    asks = Requests(services.conf, services.api, services.cells, conductor)

    def offload(cell_uuid: str) -> None:
        database = services.cells.database(cell_uuid)
        for instance in instances.select(database, query, with_tags=False):
            since = instance.system_metadata.get(SINCE)
            if since is not None and datetime.fromisoformat(since) <= before:
                _offload(asks, instance, cell_uuid)

    work = {cell.uuid: partial(offload, cell.uuid) for cell in services.cells.mappings(cell0=False)}
    services.by_cell("Offloading shelved servers").each(work, services.cells.timeout)


def _offload(services: RequestServices, instance: Instance, cell_uuid: str) -> None:
    context = admin_context(project_id=instance.project_id)
    try:
        ask(
            services,
            context,
            instance,
            cell_uuid,
            server_actions.SHELVE_OFFLOAD,
            operations.SHELVE_OFFLOAD,
            ShelveMemory(),
        )
    except (errors.StateChanged, errors.ServerNotFound):
        # Its user, or another conductor, was first.
        return
