"""``changes-since``, ``changes-before`` and times as filters: a second that is given is meant whole."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, InstanceAction
from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus
from causeway.store.api import build_requests, mappings, migrations
from causeway.store.cell import actions, instances

SECOND = "2026-05-01T10:00:00Z"
# The second before, the given one, and the one after; what is shown of the middle one is SECOND.
MOMENTS = {
    "before": datetime(2026, 5, 1, 9, 59, 59, 999_999),
    "at": datetime(2026, 5, 1, 10, 0, 0, 700_000),
    "after": datetime(2026, 5, 1, 10, 0, 1),
}
EXPECTED = {
    f"changes-since={SECOND}": ["after", "at"],
    f"changes-before={SECOND}": ["at", "before"],
    f"changes-since={SECOND}&changes-before={SECOND}": ["at"],
    "changes-before=2026-05-01T10:00:00.2Z": ["at", "before"],
    "changes-before=2026-05-01T12:00:00%2B02:00": ["at", "before"],
}


def names(answer: Any) -> list[str]:
    assert answer.status == 200, answer.text
    return sorted(server["name"] for server in answer.json["servers"])


def touch(cloud: Any, cell: str, server: Instance, **values: Any) -> None:
    """Writes the row as it is, times included."""
    with cloud.cell(cell).write() as connection:
        connection.execute(sa.update(instances.TABLE).where(instances.TABLE.c.uuid == server.uuid).values(**values))


def pending(cloud: Any, name: str, moment: datetime) -> None:
    """A server that has no cell yet."""
    flavor = Flavor("1", "m1.tiny", vcpus=1, memory_mb=512, root_gb=1)
    instance = Instance(
        uuid=str(uuid.uuid4()),
        project_id="project",
        user_id="user",
        display_name=name,
        flavor=flavor,
        created_at=moment,
    )
    request = build_requests.BuildRequest(instance.uuid, "project", moment, instance)
    with cloud.services.api.write() as connection:
        mapping = mappings.InstanceMapping(instance.uuid, "project", "user", moment, None)
        mappings.insert_in(connection, mapping)
        build_requests.insert_in(connection, request)


@pytest.mark.parametrize("query", EXPECTED)
@pytest.mark.parametrize("kind", ["never changed", "changed", "deleted", "pending"])
@pytest.mark.parametrize("page", ["", "&sort_key=display_name", "&limit=2"])
def test_servers_are_selected_by_when_they_changed(api: Any, cloud: Any, kind: str, query: str, page: str) -> None:
    """In pages by the mappings, in streams of all cells, and where there is no row yet."""
    for cell, (name, moment) in zip(("cell1", "cell2", "cell1"), MOMENTS.items(), strict=True):
        if kind == "pending":
            pending(cloud, name, moment)
            continue
        created = moment if kind == "never changed" else datetime(2020, 1, 1)
        server = cloud.server(cell, display_name=name, created_at=created)
        if kind == "deleted":
            instances.soft_delete(cloud.cell(cell), server.uuid)
        if kind != "never changed":
            touch(cloud, cell, server, updated_at=moment)
    assert names(api.get(f"/servers?{query}{page}")) == EXPECTED[query]
    shown = api.get(f"/servers/detail?{query}{page}").json["servers"]
    assert {server["name"]: server["updated"] for server in shown}["at"] == SECOND


@pytest.mark.parametrize("query", EXPECTED)
def test_actions_are_selected_by_when_they_changed(api: Any, cloud: Any, server: Instance, query: str) -> None:
    for name, moment in MOMENTS.items():
        action = InstanceAction(name, server.uuid, f"req-{name}", "user", "project", moment, moment)
        actions.start(cloud.cell("cell1"), action)
    found = api.get(f"/servers/{server.uuid}/os-instance-actions?{query}").json["instanceActions"]
    assert sorted(action["action"] for action in found) == EXPECTED[query]


@pytest.mark.parametrize("query", EXPECTED)
def test_migrations_are_selected_by_when_they_changed(admin: Any, cloud: Any, query: str) -> None:
    for name, moment in MOMENTS.items():
        migration = Migration(
            uuid=str(uuid.uuid4()),
            instance_uuid=str(uuid.uuid4()),
            migration_type="resize",
            status=MigrationStatus.CONFIRMED,
            source_compute=name,
            dest_compute="target",
            old_flavor_id=1,
            new_flavor_id=2,
            user_id="user",
            project_id="project",
            created_at=moment,
        )
        with cloud.services.api.write() as connection:
            migrations.insert_in(connection, migration)
    found = admin.get(f"/os-migrations?{query}").json["migrations"]
    assert sorted(migration["source_compute"] for migration in found) == EXPECTED[query]


@pytest.mark.parametrize("column", ["created_at", "launched_at", "terminated_at"])
def test_servers_are_found_by_the_second_that_is_shown_of_them(api: Any, cloud: Any, column: str) -> None:
    for name, moment in MOMENTS.items():
        touch(cloud, "cell1", cloud.server(display_name=name), **{column: moment})
    cloud.server(display_name="never")
    assert names(api.get(f"/servers?{column}={SECOND}")) == ["at"]
    assert names(api.get(f"/servers?{column}={SECOND}&sort_key=uuid")) == ["at"]
