"""Migrations, for the whole cloud and of one server."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations as store

KEYS_2_1 = {
    "id", "instance_uuid", "source_compute", "source_node", "dest_compute", "dest_node", "dest_host", "status",
    "old_instance_type_id", "new_instance_type_id", "created_at", "updated_at",
}  # fmt: skip


@pytest.fixture
def migrations(cloud: Any) -> list[Migration]:
    """Three, the newest last; the last one is another project's."""
    made = []
    for number, project in ((1, "project"), (2, "project"), (3, "elsewhere")):
        migration = Migration(
            uuid=str(uuid.uuid4()),
            instance_uuid=str(uuid.uuid4()),
            migration_type="resize" if number == 1 else "migration",
            status=MigrationStatus.CONFIRMED if number == 1 else MigrationStatus.FINISHED,
            source_compute=f"host{number}",
            dest_compute="target",
            old_flavor_id=1,
            new_flavor_id=2,
            user_id="user",
            project_id=project,
            created_at=datetime(2026, 8, number),
        )
        with cloud.services.api.write() as connection:
            store.insert_in(connection, migration)
        made.append(migration)
    return made


def uuids(answer: Any) -> list[str]:
    assert answer.status == 200, answer.text
    return [migration["uuid"] for migration in answer.json["migrations"]]


def test_the_newest_come_first(admin: Any, migrations: list[Migration]) -> None:
    assert uuids(admin.get("/os-migrations")) == [migration.uuid for migration in reversed(migrations)]


@pytest.mark.usefixtures("migrations")
def test_keys_change_with_the_version(admin: Any) -> None:
    def shown(version: str) -> set[str]:
        return set(admin.get("/os-migrations", version=version).json["migrations"][0])

    assert shown("2.1") == KEYS_2_1
    assert shown("2.23") == KEYS_2_1 | {"migration_type"}
    assert shown("2.59") == KEYS_2_1 | {"migration_type", "uuid"}
    assert shown("2.80") == KEYS_2_1 | {"migration_type", "uuid", "user_id", "project_id"}
    assert admin.get("/os-migrations").json["migrations"][0]["created_at"] == "2026-08-03T00:00:00.000000"


def test_filters_select_migrations(admin: Any, migrations: list[Migration]) -> None:
    first, second, third = (migration.uuid for migration in migrations)
    assert uuids(admin.get("/os-migrations?status=confirmed")) == [first]
    assert uuids(admin.get("/os-migrations?host=target")) == [third, second, first]
    assert uuids(admin.get("/os-migrations?host=host2")) == [second]
    assert uuids(admin.get("/os-migrations?source_compute=host3")) == [third]
    assert uuids(admin.get("/os-migrations?migration_type=resize")) == [first]
    assert uuids(admin.get(f"/os-migrations?instance_uuid={migrations[1].instance_uuid}")) == [second]
    assert uuids(admin.get("/os-migrations?project_id=elsewhere")) == [third]
    assert uuids(admin.get("/os-migrations?changes-since=2026-08-02T00:00:00Z")) == [third, second]
    assert uuids(admin.get("/os-migrations?changes-before=2026-08-01T02:00:00%2B01:00")) == [first]


@pytest.mark.parametrize(
    "query",
    ["changes-since=yesterday", "limit=-1", "marker=x", "colour=red", "limit=1&limit=2",
     "changes-since=2026-08-02T00:00:00Z&changes-before=2026-08-01T00:00:00Z"],
)  # fmt: skip
def test_bad_filters_are_refused(admin: Any, query: str) -> None:
    assert admin.get(f"/os-migrations?{query}").status == 400


def test_what_a_version_does_not_know_is_refused_or_ignored(admin: Any) -> None:
    assert admin.get("/os-migrations?project_id=p", version="2.79").status == 400
    assert admin.get("/os-migrations?changes-before=2026-08-01T00:00:00Z", version="2.65").status == 400
    assert admin.get("/os-migrations?limit=1", version="2.58").status == 200


def test_migrations_are_listed_in_pages(admin: Any, migrations: list[Migration]) -> None:
    page = admin.get("/os-migrations?limit=2").json
    assert page["migrations_links"][0]["href"].endswith(f"/os-migrations?limit=2&marker={migrations[1].uuid}")
    assert uuids(admin.get(f"/os-migrations?limit=2&marker={migrations[1].uuid}")) == [migrations[0].uuid]
    assert "migrations_links" not in admin.get("/os-migrations?limit=9").json
    assert admin.get(f"/os-migrations?marker={uuid.uuid4()}").status == 400


def test_managers_see_migrations_of_their_project_without_hosts(api: Any, migrations: list[Migration]) -> None:
    assert api.get("/os-migrations").status == 403
    manager = api.by("manager:project")
    assert uuids(manager.get("/os-migrations")) == [migrations[1].uuid, migrations[0].uuid]
    assert manager.get("/os-migrations?project_id=elsewhere").status == 403
    shown = manager.get("/os-migrations").json["migrations"][0]
    assert [shown[key] for key in ("source_compute", "dest_compute", "dest_host")] == [None, None, None]


def test_a_servers_own_list_is_of_live_migrations_only(admin: Any, api: Any, cloud: Any) -> None:
    server = cloud.server()
    assert admin.get(f"/servers/{server.uuid}/migrations").json == {"migrations": []}
    assert admin.get(f"/servers/{server.uuid}/migrations/1").status == 404
    assert admin.get(f"/servers/{server.uuid}/migrations", version="2.22").status == 404
    assert admin.get(f"/servers/{uuid.uuid4()}/migrations").status == 404
    assert api.get(f"/servers/{server.uuid}/migrations").status == 403
