"""The databases against each other: records, mappings, states, journal and history."""

from __future__ import annotations

import dataclasses
import uuid as uuids
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.model.instance import ActionEvent
from causeway.model.states import TaskState, VmState
from causeway.store.api import build_requests, journal, mappings, migrations
from causeway.store.api.build_requests import BuildRequest
from causeway.store.cell import actions, copies, instances
from causeway.store.database import utcnow
from tests.functional.servers.audited_cloud import AuditedCloud


def copy_to_cell2(cloud: AuditedCloud, server: Any, *, hidden: bool) -> None:
    bundle = copies.read(cloud.cell("cell1"), server.id)
    bundle.instance = dataclasses.replace(bundle.instance, hidden=hidden)
    copies.write(cloud.cell("cell2"), bundle)


def remap(cloud: AuditedCloud, server: Any, cell: str | None) -> None:
    uuid = next((found.uuid for found in cloud.parts.cells.mappings() if found.name == cell), None)
    with cloud.parts.api_database.write() as connection:
        condition = mappings.TABLE.c.instance_uuid == server.id
        connection.execute(mappings.TABLE.update().where(condition).values(cell_uuid=uuid))


# records and mappings


def test_a_hidden_copy_that_no_move_explains_goes(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    copy_to_cell2(cloud, server, hidden=True)

    found = cloud.only("record.second_copy")
    assert (found.server, found.resource) == (server.id, "record in cell2")
    cloud.fixes("record.second_copy")
    assert not copies.exists(cloud.cell("cell2"), server.id) and cloud.show(server).status == "ACTIVE"


def test_a_copy_that_is_not_hidden_is_left(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    copy_to_cell2(cloud, server, hidden=False)
    cloud.only_reports("record.second_copy")
    copies.hard_delete(cloud.cell("cell2"), server.id)


def test_a_mapping_to_a_cell_without_the_server_is_critical(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    remap(cloud, server, "cell2")

    kinds = {found.kind: found for found in cloud.audit(fix=True).disagreements}
    assert kinds["record.missing"].severity == "critical"
    assert kinds["record.second_copy"].left, "it may be the only record"
    remap(cloud, server, "cell1")
    assert cloud.audit().is_clean


def test_a_record_without_a_mapping_is_found(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    mapping = mappings.get(cloud.parts.api_database, server.id)
    with cloud.parts.api_database.write() as connection:
        connection.execute(mappings.TABLE.delete().where(mappings.TABLE.c.instance_uuid == server.id))

    cloud.only_reports("record.without_mapping")
    with cloud.parts.api_database.write() as connection:
        mappings.insert_in(connection, mapping)


def test_a_mapping_without_a_record_is_found(cloud: AuditedCloud) -> None:
    uuid, api = str(uuids.uuid4()), cloud.parts.api_database
    with api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping(uuid, "p", "u", utcnow()))

    cloud.only_reports("record.missing")
    with api.write() as connection:
        connection.execute(mappings.TABLE.delete().where(mappings.TABLE.c.instance_uuid == uuid))


def test_a_build_request_of_a_server_that_has_a_cell_is_deleted(cloud: AuditedCloud) -> None:
    server, api = cloud.boot(), cloud.parts.api_database
    record = cloud.record(server, "cell1")
    with api.write() as connection:
        build_requests.insert_in(connection, BuildRequest(server.id, record.project_id, utcnow(), record))

    cloud.only("build_request.orphaned")
    cloud.fixes("build_request.orphaned")
    assert build_requests.find(api, server.id) is None


def test_hidden_flags_follow_the_mapping(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.settle()
    instances.set_hidden(cloud.cell("cell2"), server.id, hidden=True)
    instances.set_hidden(cloud.cell("cell1"), server.id, hidden=False)

    found = [each.resource for each in cloud.audit().disagreements if each.kind == "record.hidden_flag"]
    assert sorted(found) == ["record in cell1", "record in cell2"]
    cloud.fixes("record.hidden_flag")
    assert cloud.record(server, "cell1").hidden and not cloud.record(server, "cell2").hidden


@pytest.mark.parametrize(
    "facts",
    [{"deleted": True}, {"deleted": None}, {"created_at": datetime(2020, 1, 1)}, {"project_id": "another"}],
    ids=repr,
)
def test_lists_of_servers_are_made_of_what_mappings_say(cloud: AuditedCloud, facts: dict[str, Any]) -> None:
    server = cloud.boot()
    with cloud.parts.api_database.write() as connection:
        condition = mappings.TABLE.c.instance_uuid == server.id
        connection.execute(mappings.TABLE.update().where(condition).values(facts))

    cloud.only("record.mapping_facts")
    cloud.fixes("record.mapping_facts")
    mapping = mappings.get(cloud.parts.api_database, server.id)
    record = cloud.record(server, "cell1")
    assert (mapping.deleted, mapping.created_at, mapping.project_id) == (False, record.created_at, record.project_id)
    assert server.id in [found.id for found in cloud.member.compute.servers()]


def test_a_delete_that_did_not_come_to_its_end(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    mappings.queue_for_delete(cloud.parts.api_database, server.id)
    cloud.only_reports("record.delete_unfinished")
    mappings.queue_for_delete(cloud.parts.api_database, server.id, queued=False)


# states


def test_a_moves_task_state_without_a_move_is_cleared(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    instances.update(cloud.cell("cell1"), server.id, task_state=TaskState.RESIZE_PREP)

    cloud.only("task_state.stale")
    cloud.fixes("task_state.stale")
    assert cloud.show(server).task_state is None


def test_another_task_state_is_stale_when_no_work_can_take_so_long(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    instances.update(cloud.cell("cell1"), server.id, task_state=TaskState.POWERING_OFF)

    assert cloud.audit().is_clean, "somebody may be working on it"
    cloud.only("task_state.stale", stale_after=0.0)
    report = cloud.audit(fix=True, stale_after=0.0)
    assert [found.kind for found in report.fixed] == ["task_state.stale"] and report.is_clean


def test_a_server_that_is_half_deleted_is_left(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    instances.update(cloud.cell("cell1"), server.id, task_state=TaskState.DELETING)
    report = cloud.audit(fix=True, stale_after=0.0)
    assert [(found.kind, bool(found.left)) for found in report.disagreements] == [("task_state.stale", True)]
    instances.update(cloud.cell("cell1"), server.id, task_state=None)


# migrations, moves, history


def test_a_resized_server_without_a_migration_is_found(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    instances.update(cloud.cell("cell1"), server.id, vm_state=VmState.RESIZED)
    cloud.only_reports("state.resized")
    instances.update(cloud.cell("cell1"), server.id, vm_state=VmState.ACTIVE)


def test_a_migration_that_waits_for_a_server_that_does_not(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    instances.update(cloud.cell("cell2"), server.id, vm_state=VmState.ACTIVE)
    cloud.only_reports("migration.not_resized")
    instances.update(cloud.cell("cell2"), server.id, vm_state=VmState.RESIZED)


def set_status(cloud: AuditedCloud, migration: str, status: str) -> None:
    with cloud.parts.api_database.write() as connection:
        condition = migrations.TABLE.c.uuid == migration
        connection.execute(migrations.TABLE.update().where(condition).values(status=status))


def test_a_migration_that_no_move_works_on_is_found(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.reverted(cloud.resized(server))
    migration = cloud.migration(server).uuid
    set_status(cloud, migration, "migrating")
    cloud.only_reports("migration.without_operation")
    set_status(cloud, migration, "reverted")


def test_a_move_that_is_stuck_is_shown_with_its_reason(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.option("attempts", 1, "moves")
    cloud.option("first_pause", 0.0, "moves")
    cloud.option("stuck_retry_interval", 0.1, "moves")
    cloud.resized(server)
    cloud.fail("status", "/bindings/", service="network", method="DELETE", status=503)
    cloud.member.compute.confirm_server_resize(server.id)

    report = cloud.audit()
    while not report.disagreements:
        report = cloud.audit()
    assert {found.kind for found in report.disagreements} == {"operation.stuck"}
    assert report.disagreements[0].left
    cloud.heal()
    cloud.settle()
    assert cloud.audit().is_clean


def test_a_move_without_a_server(cloud: AuditedCloud) -> None:
    server, api = cloud.boot(), cloud.parts.api_database
    cloud.confirmed(cloud.resized(server))
    move = cloud.moves(server)[0]
    unknown = dataclasses.replace(
        move, id=str(uuids.uuid4()), instance_uuid=str(uuids.uuid4()), migration_uuid=str(uuids.uuid4()), ended_at=None
    )
    with api.write() as connection:
        journal.insert_in(connection, unknown)
        # Owned by somebody whose lease holds, so that no conductor takes it.
        held = {"state": "running", "owner": "elsewhere", "lease_until": utcnow().replace(year=2999)}
        connection.execute(journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == unknown.id).values(held))

    cloud.only_reports("operation.without_server")
    with api.write() as connection:
        connection.execute(sa.delete(journal.OPERATIONS).where(journal.OPERATIONS.c.id == unknown.id))


def test_an_event_of_a_move_that_never_ended(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.confirmed(cloud.resized(server))
    request_id = cloud.action(server, "resize").request_id
    actions.record_event(cloud.cell("cell2"), server.id, request_id, ActionEvent("cold_migrate_again", host="h"))

    cloud.only("event.unfinished")
    cloud.fixes("event.unfinished")
    assert ("cold_migrate_again", "Error") in cloud.events(server, "resize")
