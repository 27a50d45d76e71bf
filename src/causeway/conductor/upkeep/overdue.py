"""Finds servers that have been in a state for too long, and acts on them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.running.services import ConductorServices
from causeway.store.cell import instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)


def each_overdue(
    services: ConductorServices,
    what: str,
    act: Callable[[Instance, str], None],
    *,
    state: VmState,
    since: str,
    seconds: float,
) -> None:
    """Calls ``act`` with each server (and its cell) that has been in ``state`` for at least ``seconds`` and has no task.

    Looks in every cell that answers. ``since``: the key of the system metadata with the time when the server entered the state.
    If ``act`` fails, the next look tries again.
    """
    before = utcnow() - timedelta(seconds=seconds)
    table = instances.TABLE
    query = table.select().where(
        table.c.vm_state == state.value, table.c.task_state.is_(None), table.c.deleted.is_(False)
    )

    def of_cell(cell_uuid: str) -> None:
        for instance in instances.select(services.cells.database(cell_uuid), query, with_tags=False):
            time = instance.system_metadata.get(since)
            if time is None or datetime.fromisoformat(time) > before:
                continue
            try:
                act(instance, cell_uuid)
            except (errors.StateChanged, errors.ServerNotFound):
                # The user or another conductor has acted first.
                continue
            except errors.CausewayError as failure:
                LOG.warning("%s: server %s is tried again later: %s", what, instance.uuid, failure.message)

    work = {cell.uuid: partial(of_cell, cell.uuid) for cell in services.cells.mappings(cell0=False)}
    services.by_cell(what).each(work, services.cells.timeout)
