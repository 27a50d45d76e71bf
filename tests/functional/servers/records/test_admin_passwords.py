"""The administrator's password of a create, rebuild, rescue or evacuate: the guest's config drive has it; no record keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from causeway.store.database import Database
from tests.functional.live.live_cloud import ONE_NETWORK
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("reads databases and config drives")

KIND = AuditedCloud
CLOUD: dict[str, Any] = {"overrides": {"simulated": ONE_NETWORK}}
CHOSEN = "chosen-by-its-user"


def create(cloud: Cloud, **fields: Any) -> tuple[Any, str]:
    """A server that was asked for, and the password of the answer."""
    body = {"name": "server", "flavorRef": "gen1.small", "imageRef": cloud.image_id, "networks": "none"}
    answer = cloud.member.compute.post("/servers", json={"server": body | fields}, microversion="2.37")
    assert answer.status_code == 202, answer.text
    asked = answer.json()["server"]
    return cloud.member.compute.get_server(asked["id"]), asked["adminPass"]


def on_drive(cloud: Cloud, server: Any) -> str | None:
    """The password that the guest reads."""
    host = cloud.show(server).compute_host
    path = cloud.parts.state.host(host) / "instances" / server.id / "disk.config"
    files = msgspec.json.decode(path.read_bytes(), type=dict[str, bytes])
    found: str | None = msgspec.json.decode(files["openstack/latest/meta_data.json"]).get("admin_pass")
    return found


def is_kept_nowhere(cloud: Cloud, password: str) -> None:
    """No row of any table has it."""
    cloud.settle()
    databases: list[Database] = [cloud.parts.api_database, *(cloud.cell(name) for name in ("cell0", "cell1", "cell2"))]
    for database in databases:
        with database.read() as connection:
            names = sa.inspect(connection).get_table_names()
            for name in names:
                rows = connection.execute(sa.text(f"SELECT * FROM {name}")).all()
                assert not [row for row in rows if password in repr(row)], name


@pytest.mark.parametrize("fields", [{}, {"adminPass": CHOSEN}], ids=["generated", "chosen"])
def test_a_new_server_reads_the_password_of_the_answer(cloud: AuditedCloud, fields: dict[str, str]) -> None:
    server, password = create(cloud, config_drive=True, **fields)
    assert password == fields.get("adminPass", password)
    cloud.wait(server, "ACTIVE")
    assert on_drive(cloud, server) == password
    is_kept_nowhere(cloud, password)


@pytest.mark.parametrize("fields", [{}, {"adminPass": CHOSEN}], ids=["generated", "chosen"])
@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_a_rebuilt_or_rescued_server_reads_the_password_of_the_answer(
    cloud: AuditedCloud, action: str, fields: dict[str, str]
) -> None:
    server, first = create(cloud, config_drive=True)
    cloud.wait(server, "ACTIVE")
    wanted = {"imageRef": cloud.image_id, **fields} if action == "rebuild" else fields
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={action: wanted}, microversion="2.37")
    assert answer.status_code in (200, 202), answer.text
    password = (answer.json().get("server") or answer.json())["adminPass"]
    cloud.wait(server, {"rebuild": "ACTIVE", "rescue": "RESCUE"}[action])
    assert on_drive(cloud, server) == password != first
    is_kept_nowhere(cloud, password)


def test_an_evacuated_server_reads_the_password_of_the_answer(cloud: AuditedCloud, dead: Callable[..., None]) -> None:
    server, _ = create(cloud, config_drive=True)
    cloud.wait(server, "ACTIVE")
    dead(cloud.show(server).compute_host)
    answer = cloud.admin.compute.post(
        f"/servers/{server.id}/action",
        json={"evacuate": {"adminPass": CHOSEN, "onSharedStorage": False}},
        microversion="2.13",
    )
    assert answer.json() == {"adminPass": CHOSEN}, answer.text
    until(lambda: cloud.migration(server).status, lambda status: status == "done", "the evacuation")
    cloud.wait(server, "ACTIVE")
    assert on_drive(cloud, server) == CHOSEN
    is_kept_nowhere(cloud, CHOSEN)


def test_a_drive_that_a_move_makes_is_without_it(cloud: AuditedCloud) -> None:
    """As in Nova, the drive is made anew, without what only the first boot needs."""
    server, password = create(cloud, config_drive=True)
    cloud.resized(cloud.wait(server, "ACTIVE"))
    assert on_drive(cloud, server) is None
    is_kept_nowhere(cloud, password)


def test_nothing_keeps_it_if_no_host_can_be_found(cloud: AuditedCloud) -> None:
    nowhere = cloud.flavor("nowhere", gen=9)
    server, password = create(cloud, config_drive=True, flavorRef=nowhere)
    cloud.wait(server, "ERROR")
    is_kept_nowhere(cloud, password)


def test_nothing_keeps_it_if_the_server_is_deleted_while_it_is_built(cloud: AuditedCloud) -> None:
    server, password = create(cloud, config_drive=True)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    is_kept_nowhere(cloud, password)
