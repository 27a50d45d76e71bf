"""Migrations of servers between hosts, as the Compute API shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from causeway.model.states import MIGRATION_ENDED, MigrationStatus

# The type of a migration away from a dead host.
EVACUATION = "evacuation"
# The type of a migration while the guest runs, and the statuses in which it is under way.
LIVE_MIGRATION = "live-migration"
LIVE_IN_PROGRESS = (MigrationStatus.QUEUED, MigrationStatus.PREPARING, MigrationStatus.RUNNING)


def live_status_after(status: MigrationStatus, *, cancelled: bool) -> MigrationStatus:
    """The status of a live migration that failed. As in Nova, it is an error if its hosts had not agreed yet."""
    if status in MIGRATION_ENDED:
        # This was done before.
        return status
    if cancelled:
        return MigrationStatus.CANCELLED
    return MigrationStatus.ERROR if status is MigrationStatus.ACCEPTED else MigrationStatus.FAILED


@dataclass
class Migration:
    """One row of the API database for the whole life of a move, whichever cells have the server."""

    uuid: str
    instance_uuid: str
    migration_type: str  # resize | migration | evacuation | live-migration
    status: MigrationStatus
    source_compute: str | None = None
    source_node: str | None = None
    source_cell: str | None = None
    dest_compute: str | None = None
    dest_node: str | None = None
    dest_host: str | None = None
    dest_cell: str | None = None
    old_flavor_id: int = 0
    new_flavor_id: int = 0
    cross_cell_move: bool = False
    hidden: bool = False
    user_id: str | None = None
    project_id: str | None = None
    disk_total_bytes: int | None = None
    disk_processed_bytes: int | None = None
    disk_remaining_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_processed_bytes: int | None = None
    memory_remaining_bytes: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    id: int = 0
