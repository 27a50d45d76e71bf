"""Whether a finished migration can be confirmed now, for callers that confirm without a user's request."""

from __future__ import annotations

from datetime import timedelta

from causeway.hosts import liveness
from causeway.hosts.liveness import HostLife
from causeway.model.migration import Migration
from causeway.model.operations import CONFIRM_RESIZE, present_name
from causeway.model.sagas import SagaState
from causeway.running.services import ConductorServices
from causeway.store.api import journal
from causeway.store.database import utcnow

# The time between a failed confirm and the next attempt.
AFTER_FAILURE = timedelta(hours=1)


def obstacle(services: ConductorServices, migration: Migration) -> str | None:
    """Returns why a confirm would fail now; None if it would not."""
    for cell_uuid in (migration.source_cell, migration.dest_cell):
        if services.cells.is_down(cell_uuid or ""):
            return f"cell {cell_uuid} does not answer"
    source = _life(services, migration.source_cell, migration.source_compute)
    target = _life(services, migration.dest_cell, migration.dest_compute)
    if source.is_down:
        return source.explained()
    if not target.is_up:
        return target.explained()
    for move in journal.of_migration(services.api, migration.uuid):
        failed_at = move.ended_at if move.state is SagaState.FAILED else None
        if (
            present_name(move.recipe) == CONFIRM_RESIZE
            and failed_at is not None
            and failed_at > utcnow() - AFTER_FAILURE
        ):
            return f"the last confirm failed: {(move.error or {}).get('message')}"
    return None


def _life(services: ConductorServices, cell_uuid: str | None, host: str | None) -> HostLife:
    return liveness.of_host(services, services.cells.database(cell_uuid or ""), host or "")
