"""Runs moves: asked for by the API, or left in the middle by a conductor that stopped."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.moves import Move, MoveState
from causeway.moves.engine import Engine
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import journal, mappings

LOG = logging.getLogger(__name__)


class MovesEndpoint:
    """RPC: run_move."""

    def __init__(self, services: ConductorServices, engine: Engine, conductor: ConductorClient) -> None:
        self._services = services
        self._engine = engine
        self._conductor = conductor

    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        try:
            state = self._engine.run(context, move_id)
        except errors.StateChanged as change:
            LOG.info("Move %s: %s", move_id, change.message)
            return
        LOG.info("Move %s: %s", move_id, state)
        move = journal.get(self._services.api, move_id)
        self._delete_if_wanted(context, move)

    def _delete_if_wanted(self, context: RequestContext, move: Move) -> None:
        """A server that the user deleted while it was being moved."""
        if move.state not in (MoveState.DONE, MoveState.FAILED):
            return
        if mappings.get(self._services.api, move.instance_uuid).queued_for_delete:
            self._conductor.delete_instance(context, instance_uuid=move.instance_uuid)


def resume(services: ConductorServices, conductor: ConductorClient) -> None:
    """Goes on with every move that has not ended. For the start of a conductor, when nobody else works on moves."""
    for move in journal.unfinished(services.api):
        conductor.run_move(context_of(move), move_id=move.id)


def context_of(move: Move) -> RequestContext:
    """The request that asked for a move, with the system's own credentials: the user's token may have expired."""
    return RequestContext(
        request_id=move.request_id,
        user_id=move.user_id,
        project_id=move.project_id,
        is_admin=True,
        roles=["admin"],
        overwrite=False,
    )
