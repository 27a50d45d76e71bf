"""Moves: asked for by the API, run by the keeper."""

from __future__ import annotations

from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.moves import Move
from causeway.moves.keeper import Keeper
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import mappings


class MovesEndpoint:
    """RPC: run_move."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        self._keeper.submit(context, move_id)


def delete_if_wanted(
    services: ConductorServices, conductor: ConductorClient, context: RequestContext, move: Move
) -> None:
    """When a move has ended: deletes the server if its user asked for that meanwhile."""
    if mappings.get(services.api, move.instance_uuid).queued_for_delete:
        conductor.delete_instance(context, instance_uuid=move.instance_uuid)
