"""Requests the confirm or the revert of a server's move, and cancels operations that are running.

A request is accepted only while the drain has the same owner and state, so a slow conductor can't repeat one.
"""

from __future__ import annotations

from causeway.drains.look import Look
from causeway.faults import injector
from causeway.model.drains import DrainServer, DrainServerState
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import OperationBrief
from causeway.model.sagas import ENDED
from causeway.model.states import VmState
from causeway.moves.confirmable import obstacle
from causeway.moves.requests import request_confirm, request_revert
from causeway.operations import requests
from causeway.store.cell import instances
from causeway.store.database import utcnow


def ask_for_confirm(look: Look, server: DrainServer, migration: Migration) -> None:
    """Requests the confirm of a move. If a host of the move is not up, the confirm waits and the row says for what."""
    why = obstacle(look.services, migration)
    if why is not None:
        look.change(server, why=f"Its confirm waits: {why}", not_before=utcnow() + look.pause_after(1))
        return
    found = _find_resized(look, server)
    if found is None:
        return
    instance, cell_uuid = found
    injector.reach("drain.confirm.before")
    request_confirm(look.requests, look.context(), instance, cell_uuid=cell_uuid, also=look.still_wanted())
    injector.reach("drain.confirm.after")
    look.change(server, state=DrainServerState.CONFIRMING, why=None, not_before=None)


def ask_for_revert(look: Look, server: DrainServer) -> None:
    """Requests the revert of a move, unless another operation is running on the server."""
    found = _find_resized(look, server)
    if found is None:
        return
    instance, cell_uuid = found
    injector.reach("drain.revert.before")
    request_revert(look.requests, look.context(), instance, cell_uuid=cell_uuid, also=look.still_wanted())
    injector.reach("drain.revert.after")
    look.change(server, state=DrainServerState.REVERTING, why=None, not_before=None)


def _find_resized(look: Look, server: DrainServer) -> tuple[Instance, str] | None:
    """Returns the resized server with its cell's uuid; None while another operation is running on it."""
    cell, database = look.services.cells.of_server(server.instance_uuid)
    instance = instances.find(database, server.instance_uuid, with_tags=False)
    if instance is None or instance.vm_state is not VmState.RESIZED or instance.task_state is not None:
        return None
    return instance, cell.uuid


def cancel_running(look: Look, under_way: list[OperationBrief]) -> None:
    """Cancels those of the running operations that can still be cancelled."""
    for operation in under_way:
        if operation.state not in ENDED and not operation.pivoted and not operation.cancel_requested:
            requests.cancel(look.requests, operation.instance_uuid, operation.migration_uuid)
