"""Databases: every server lives in exactly one cell, the one that its mapping names."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Record, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import MIGRATION_ENDED


def mappings_without_record(snapshot: Snapshot) -> Iterator[Disagreement]:
    for uuid, mapping in snapshot.mappings.items():
        if mapping.queued_for_delete or mapping.cell_uuid in snapshot.down_cells:
            continue
        if mapping.cell_uuid is None:
            if uuid not in snapshot.build_requests:
                yield Disagreement(
                    "record.missing",
                    Severity.ERROR,
                    "mapping",
                    uuid,
                    "The server has a mapping without a cell, and no build request: it will never be built.",
                    left="Notify its user if necessary; then delete it from the database.",
                )
        elif snapshot.home(uuid) is None:
            others = [snapshot.cell_name(record.cell_uuid) for record in snapshot.records.get(uuid, [])]
            yield Disagreement(
                "record.missing",
                Severity.CRITICAL,
                f"mapping to {snapshot.cell_name(mapping.cell_uuid)}",
                uuid,
                f"The server's mapping says {snapshot.cell_name(mapping.cell_uuid)}, which has no record of it"
                + (f"; {', '.join(others)} has one." if others else "; nor has any other cell."),
                left="Find out from the hosts first where the server is."
                if others
                else "The records are gone: restore them from a backup, or delete the mapping.",
            )


def without_mapping(snapshot: Snapshot) -> Iterator[Disagreement]:
    for uuid, found in snapshot.records.items():
        if uuid not in snapshot.mappings:
            cells = ", ".join(snapshot.cell_name(record.cell_uuid) for record in found)
            yield Disagreement(
                "record.without_mapping",
                Severity.CRITICAL,
                f"record in {cells}",
                uuid,
                f"The server has records in {cells}, but no mapping: nobody can reach it through the API.",
                left="Find out from its host first whether it is a server or only what is left of one.",
            )


def second_copies(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Records outside the cell where the server lives, that no move explains."""
    for uuid, found in snapshot.records.items():
        mapping = snapshot.mappings.get(uuid)
        if mapping is None:
            continue
        movement = snapshot.movement(uuid)
        explained = movement.cells if movement is not None else set()
        for record in found:
            if record.cell_uuid in {mapping.cell_uuid, *explained}:
                continue
            yield _second_copy(snapshot, record)


def _second_copy(snapshot: Snapshot, record: Record) -> Disagreement:
    cell, home = snapshot.cell_name(record.cell_uuid), snapshot.home(record.uuid)
    open_migrations = [
        migration
        for migration in snapshot.migrations.values()
        if migration.instance_uuid == record.uuid and migration.status not in MIGRATION_ENDED
    ]
    left = ""
    if home is None:
        left = "The cell that the mapping names has no record: this may be the only one."
    elif not record.hidden:
        left = "The copy is not hidden: which of the two is used must be found out first."
    elif open_migrations:
        left = "A migration of the server has not ended."
    return Disagreement(
        "record.second_copy",
        Severity.CRITICAL if not record.hidden else Severity.ERROR,
        f"record in {cell}",
        record.uuid,
        f"{cell} has a record of the server{' (hidden)' if record.hidden else ''}, which lives in"
        f" {snapshot.cell_name(home.cell_uuid) if home is not None else 'another cell'}; no move explains it.",
        None if left else Fix("delete_copy", {"uuid": record.uuid, "cell_uuid": record.cell_uuid}),
        left,
    )


def hidden_flags(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Wrong hidden flags. The mapping decides: the record that it names is visible, all others are hidden."""
    for uuid, found in snapshot.records.items():
        movement, home = snapshot.movement(uuid), snapshot.home(uuid)
        if home is None or (movement is not None and movement.under_way):
            continue
        for record in found:
            is_home = record is home
            explained = movement is not None and record.cell_uuid in movement.cells
            if record.hidden != is_home or not (is_home or explained):
                continue
            cell = snapshot.cell_name(record.cell_uuid)
            yield Disagreement(
                "record.hidden_flag",
                Severity.ERROR,
                f"record in {cell}",
                uuid,
                f"The server lives in {cell}, but its record there is hidden."
                if is_home
                else f"The server's copy in {cell} waits for a revert, but is not hidden.",
                Fix("set_hidden", {"uuid": uuid, "cell_uuid": record.cell_uuid, "hidden": not is_home}),
            )


def mapping_facts(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Mappings that differ from their server's record: lists of servers are made from mappings."""
    for record in snapshot.homes:
        mapping = snapshot.mappings[record.uuid]
        stated = {"project": mapping.project_id, "user": mapping.user_id, "time of creation": mapping.created_at}
        real = {"project": record.project_id, "user": record.user_id, "time of creation": record.created_at}
        wrong = [name for name, value in stated.items() if value != real[name]]
        if mapping.deleted is None:
            message = "The server's mapping does not say whether it is deleted: lists of servers leave it out."
        elif mapping.deleted:
            message = "The server's mapping says that it is deleted: lists of servers leave it out."
        elif wrong:
            message = f"The server's mapping has another {' and '.join(wrong)} than its record: lists may leave it out."
        else:
            continue
        yield Disagreement(
            "record.mapping_facts",
            Severity.ERROR,
            "mapping",
            record.uuid,
            message,
            Fix("complete_mapping", {"uuid": record.uuid}),
        )


def build_requests(snapshot: Snapshot) -> Iterator[Disagreement]:
    for uuid in snapshot.build_requests:
        mapping = snapshot.mappings.get(uuid)
        if mapping is not None and mapping.cell_uuid is None:
            continue
        has_record = snapshot.home(uuid) is not None
        yield Disagreement(
            "build_request.orphaned",
            Severity.ERROR,
            "build request",
            uuid,
            "The server has a build request, but is in a cell already."
            if mapping is not None
            else "There is a build request without a mapping.",
            Fix("delete_build_request", {"uuid": uuid}) if has_record else None,
            left="" if has_record else "The server has no record in a cell: this may be all that is known of it.",
        )


def unfinished_deletes(snapshot: Snapshot) -> Iterator[Disagreement]:
    for record in snapshot.homes:
        if snapshot.mappings[record.uuid].queued_for_delete and snapshot.is_quiet(record):
            yield Disagreement(
                "record.delete_unfinished",
                Severity.WARNING,
                "record",
                record.uuid,
                f"The server was deleted by its user, but is still there ({record.vm_state}).",
                left="Its fault says what failed; delete it again when that is fixed.",
            )
