"""Histories of servers: actions, faults, migrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from causeway.adopt.nova.objects import UnknownRecord
from causeway.model.instance import ActionEvent, InstanceAction, InstanceFault
from causeway.model.migration import EVACUATION, Migration
from causeway.model.states import MIGRATION_ENDED, MigrationStatus
from causeway.store.cell import actions as stored
from causeway.store.columns import fitting

Row = Mapping[str, Any]
_BYTES = ("memory_total", "memory_processed", "memory_remaining", "disk_total", "disk_processed", "disk_remaining")


def actions_of(rows: Iterable[Row], events: Mapping[int, list[Row]]) -> list[InstanceAction]:
    """The oldest first, each with its events."""
    return [
        InstanceAction(
            action=row["action"] or "",
            instance_uuid=row["instance_uuid"],
            request_id=fitting(row["request_id"] or "", stored.ACTIONS.c.request_id) or "",
            user_id=row["user_id"],
            project_id=row["project_id"],
            start_time=row["start_time"],
            updated_at=row["updated_at"],
            finish_time=row["finish_time"],
            message=row["message"],
            events=[_event(each) for each in events.get(row["id"], [])],
        )
        for row in rows
    ]


def _event(row: Row) -> ActionEvent:
    return ActionEvent(
        event=row["event"] or "",
        start_time=row["start_time"] or row["created_at"],
        finish_time=row["finish_time"],
        result=fitting(row["result"], stored.EVENTS.c.result),
        traceback=row["traceback"],
        host=row["host"],
        details=row["details"],
    )


def fault_of(row: Row) -> InstanceFault:
    return InstanceFault(row["code"], row["message"] or "", row["details"] or "", row["host"], row["created_at"])


def migrations_of(rows: Sequence[Row], cells: Mapping[str, str], what: str) -> list[Migration]:
    """One for each uuid: a move between cells has a row in both, of which the newer one counts. Raises UnknownRecord.

    ``cells``: host -> uuid of its cell.
    """
    newest: dict[str, Row] = {}
    for row in rows:
        known = newest.get(row["uuid"])
        if known is None or (row["updated_at"] or row["created_at"]) > (known["updated_at"] or known["created_at"]):
            newest[row["uuid"]] = row
    return sorted(
        (_migration(row, cells, what) for row in newest.values()), key=lambda each: (each.created_at, each.uuid)
    )


def is_under_way(migration: Migration) -> bool:
    """Whether it may still change. An evacuation is done before its old host has cleaned up."""
    if migration.migration_type == EVACUATION and migration.status is MigrationStatus.DONE:
        return False
    return migration.status not in MIGRATION_ENDED


def _migration(row: Row, cells: Mapping[str, str], what: str) -> Migration:
    try:
        status = MigrationStatus(row["status"])
    except ValueError as failure:
        raise UnknownRecord(f"{what}: migration {row['uuid']} has the unknown status {row['status']}.") from failure
    return Migration(
        uuid=row["uuid"],
        instance_uuid=row["instance_uuid"],
        migration_type=row["migration_type"] or "migration",
        status=status,
        source_compute=row["source_compute"],
        source_node=row["source_node"],
        source_cell=cells.get(row["source_compute"] or ""),
        dest_compute=row["dest_compute"],
        dest_node=row["dest_node"],
        dest_host=row["dest_host"],
        dest_cell=cells.get(row["dest_compute"] or ""),
        old_flavor_id=row["old_instance_type_id"] or 0,
        new_flavor_id=row["new_instance_type_id"] or 0,
        cross_cell_move=bool(row["cross_cell_move"]),
        hidden=bool(row["hidden"]),
        user_id=row["user_id"],
        project_id=row["project_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        **{f"{name}_bytes": row[name] for name in _BYTES},
    )


__all__ = ["actions_of", "fault_of", "is_under_way", "migrations_of"]
