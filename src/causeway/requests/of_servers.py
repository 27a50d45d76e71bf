"""Requests operations on servers.

`causeway.requests.acceptance` says what is written where, and when a request counts. Then a conductor is notified. If none can be
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
from causeway.requests import acceptance, requesters
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
    """What is needed to request an operation."""

    @property
    def conf(self) -> cfg.ConfigOpts: ...
    @property
    def cells(self) -> Cells: ...


@dataclass
class Requests:
    """`RequestServices` for callers other than the API."""

    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    conductor: ConductorClient


def enter(services: RequestServices, context: RequestContext, cell_uuid: str, request: acceptance.Request) -> None:
    """Enters a request, and notifies a conductor. Raises what `acceptance.enter` raises."""
    request.requester = requesters.requester_of(services.conf, context, request.operation.instance_uuid)
    try:
        acceptance.enter(services.api, services.cells, cell_uuid, request)
    except errors.CausewayError:
        # A conductor that deletes the server may have seen the refused operation, and may be waiting for its end.
        run_waiting(services, request.operation.instance_uuid)
        raise


def notify_conductor(services: HasConductor, context: RequestContext, operation: Operation) -> None:
    """Notifies a conductor. If none can be reached, the operation stays accepted, and one finds it in the journal."""
    try:
        services.conductor.run_move(context, move_id=operation.id)
    except errors.ServiceFailed as failure:
        LOG.warning(
            "Operation %s waits until a conductor finds it: %s %s", operation.id, failure.message, failure.details
        )


def context_of(operation: Operation) -> RequestContext:
    """The context of an operation's request, with the system's own credentials, since the user's token may have expired."""
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

    If none can be reached, the operations wait until one finds them.
    """
    for operation in journal.waiting(services.api, instance_uuid):
        if operation.id != but:
            notify_conductor(services, context_of(operation), operation)


def of_deletion(cells: Cells, context: RequestContext, instance_uuid: str) -> RequestContext:
    """The context with the id of the request that deletes the server, so that events belong to that action.

    Without a user's token, the context also has the user who made that request. A token is valid only for its own user.
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
