"""How an operation on a server is asked for, whichever it is.

What is written where, and when a request counts, is in `causeway.parts.acceptance`. Then a conductor is notified; if none can be
reached, one finds the operation in the journal.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

from oslo_config import cfg

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import Instance, InstanceAction
from causeway.model.operations import Operation
from causeway.parts import acceptance, requesters
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import journal
from causeway.store.cell import actions
from causeway.store.cells import Cells
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class HasConductor(Protocol):
    """What is needed to have operations run."""

    @property
    def api(self) -> Database: ...
    @property
    def conductor(self) -> ConductorClient: ...


class RequestServices(HasConductor, Protocol):
    """What is needed to ask for an operation."""

    @property
    def conf(self) -> cfg.ConfigOpts: ...
    @property
    def cells(self) -> Cells: ...


@dataclass
class Requests:
    """`RequestServices` for those who are not the API."""

    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    conductor: ConductorClient


def enter(services: RequestServices, context: RequestContext, cell_uuid: str, request: acceptance.Request) -> None:
    """Has a request accepted; raises what `acceptance.enter` does."""
    request.requester = requesters.requester_of(services.conf, context, request.operation.instance_uuid)
    try:
        acceptance.enter(services.api, services.cells, cell_uuid, request)
    except errors.CausewayError:
        # A conductor that was to delete the server may have seen the operation that was never to be, and waits for its end.
        run_waiting(services, request.operation.instance_uuid)
        raise


def notify_conductor(services: HasConductor, context: RequestContext, operation: Operation) -> None:
    """Notifies a conductor. If none can be reached the operation is accepted all the same: they find it in the journal."""
    try:
        services.conductor.run_move(context, move_id=operation.id)
    except errors.ServiceFailed as failure:
        LOG.warning("Operation %s waits to be found: %s %s", operation.id, failure.message, failure.details)


def context_of(operation: Operation) -> RequestContext:
    """The request that asked for an operation, with the system's own credentials: the user's token may have expired."""
    return RequestContext(
        request_id=operation.request_id,
        user_id=operation.user_id,
        project_id=operation.project_id,
        is_admin=True,
        roles=["admin"],
        overwrite=False,
    )


def run_waiting(services: HasConductor, instance_uuid: str, *, but: str | None = None) -> None:
    """Notifies a conductor of the server's operations that have no owner, ``but`` for one that it already knows.

    If none can be reached they wait until they are found.
    """
    for operation in journal.waiting(services.api, instance_uuid):
        if operation.id != but:
            notify_conductor(services, context_of(operation), operation)


def of_deletion(cells: Cells, context: RequestContext, instance_uuid: str) -> RequestContext:
    """The context with the request that asked for the server's deletion: its events belong to that action, whoever does it.

    Without a user's token it is also the context of the user who asked; a token speaks for its own user only.
    """
    try:
        _cell, database = cells.of_server(instance_uuid)
    except errors.ServerNotFound:
        return context
    action = actions.newest(database, instance_uuid, "delete")
    if action is None:
        return context
    asked = context.for_another_request(action.request_id)
    if not asked.auth_token:
        asked.user_id, asked.project_id = action.user_id, action.project_id
    return asked


def action_of(context: RequestContext, instance: Instance, name: str) -> InstanceAction:
    return InstanceAction(
        action=name,
        instance_uuid=instance.uuid,
        request_id=context.request_id,
        user_id=context.user_id,
        project_id=context.project_id,
    )
