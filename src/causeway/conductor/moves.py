"""Moves: asked for by the API, run by the keeper."""

from __future__ import annotations

from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.moves import Move
from causeway.moves.keeper import Keeper, context_of
from causeway.moves.requests import of_deletion
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import journal


class MovesEndpoint:
    """RPC: run_move, take_over_move."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        self._keeper.submit(context, move_id)

    def take_over_move(self, context: RequestContext, *, move_id: str) -> None:
        self._keeper.go_on(context, move_id)


def go_on(services: ConductorServices, conductor: ConductorClient, context: RequestContext, move: Move) -> None:
    """When a move has ended: runs the one that waited for that (a confirm or revert), or deletes the server if wanted."""
    to_delete, waiting = journal.after_end(services.api, move.instance_uuid)
    if waiting is not None:
        conductor.run_move(context_of(journal.get(services.api, waiting)), move_id=waiting)
    elif to_delete:
        asked = of_deletion(services.cells, context, move.instance_uuid)
        conductor.delete_instance(asked, instance_uuid=move.instance_uuid)
