"""Turns builds and deletes that the previous release began, without a journal, into operations."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.requesters import Requester
from causeway.model.sagas import ENDED
from causeway.operations.build_run import BuildMemory
from causeway.operations.delete import DeleteMemory
from causeway.operations.requests import operation_of
from causeway.parts import requesters
from causeway.parts.requests import of_deletion
from causeway.parts.services import ConductorServices
from causeway.store.api import build_requests, deletions, journal
from causeway.store.api.build_requests import BuildRequest
from causeway.store.database import Database


def build(services: ConductorServices, request: BuildRequest) -> str | None:
    """Writes an operation that continues a build. Returns its id; None if another conductor has done this first."""
    kept = Requester(request.requester, request.sealed_token)
    context = requesters.context_of(services.conf, kept, request.instance_uuid)
    if context is None:
        # A still earlier release wrote the request, without its context. The record names the user, who gets only the rights
        # that a build needs.
        instance = request.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id, overwrite=False)
        kept = Requester(context.without_tokens())
    move = operation_of(context, request.instance_uuid, operations.BUILD, BuildMemory())
    with services.api.write() as connection:
        if not build_requests.take_over_in(connection, request):
            return None
        journal.insert_in(connection, move, requester=kept)
    return move.id


def delete(services: ConductorServices, context: RequestContext, instance: Instance) -> str | None:
    """Writes an operation that continues a delete. Returns its id; None if there is one already."""
    asked = of_deletion(services.cells, context, instance.uuid)
    move = operation_of(asked, instance.uuid, operations.DELETE, DeleteMemory())
    if _is_in_journal(services.api, instance.uuid):
        return None
    with services.api.write() as connection:
        deletions.queue_in(connection, instance.uuid)
        journal.insert_in(connection, move, requester=requesters.requester_of(services.conf, asked, instance.uuid))
    return move.id


def _is_in_journal(api: Database, instance_uuid: str) -> bool:
    unfinished = (move for move in journal.of_server(api, instance_uuid) if move.state not in ENDED)
    return any(move.recipe == operations.DELETE for move in unfinished)
