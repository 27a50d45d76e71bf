"""A conductor dies while it builds or deletes a server: who takes that up does it for the user who asked.

Two conductors share the work. Who dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_context import context as oslo_context

from causeway.audit import audit_embedded
from causeway.model.sagas import ENDED
from causeway.store.api import journal
from tests.functional.servers.dying_threads import SOON_TAKEN_OVER, THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = SOON_TAKEN_OVER
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]

IS_UNDER_WAY = journal.OPERATIONS.c.state.not_in([state.value for state in ENDED])
CHOOSE_HOST = "rpc.scheduler.select_destinations.request"


def ask_for(cloud: Cloud, user: Any = None) -> Any:
    """Asks for a server whose root disk is a volume that is to be made from the demo image."""
    root = {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    return (user or cloud.member).compute.create_server(
        name="server",
        flavor_id="gen1.small",
        networks=[{"uuid": cloud.network_id}],
        block_device_mapping=[root],
    )


def volumes_of_all(cloud: Cloud) -> list[Any]:
    return list(cloud.admin.block_storage.volumes(all_projects=True))


def deleted(cloud: Cloud, server: Any) -> None:
    """Deletes a server: it leaves nothing."""
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.ports(server) == {}
    assert cloud.attachments(server) == []
    until(lambda: volumes_of_all(cloud), lambda left: not left, "the volumes to go")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_root_volume_that_is_made_after_a_takeover_is_its_users(cloud: Cloud, dies_at: Any) -> None:
    dies_at(CHOOSE_HOST)
    server = cloud.wait(ask_for(cloud), "ACTIVE")
    project = cloud.member.current_project_id
    (root,) = cloud.member.compute.volume_attachments(server.id)
    assert cloud.member.block_storage.get_volume(root.volume_id).status == "in-use"
    assert [volume.project_id for volume in volumes_of_all(cloud)] == [project]
    assert [port.project_id for port in cloud.admin.network.ports(device_id=server.id)] == [project]
    cloud.resized(server)
    assert cloud.reverted(server).status == "ACTIVE"
    deleted(cloud, server)


def test_a_build_that_is_taken_up_is_the_request_that_it_was(cloud: Cloud, dies_at: Any) -> None:
    dies_at(CHOOSE_HOST)
    body = {"name": "server", "flavorRef": "any.small", "imageRef": cloud.image_id, "networks": "none"}
    answer = cloud.member.compute.post("/servers", json={"server": body})
    server = cloud.wait(cloud.member.compute.get_server(answer.json()["server"]["id"]), "ACTIVE")
    action = cloud.action(server, "create")
    assert action.request_id == answer.headers["x-openstack-request-id"]
    assert (action.user_id, action.project_id) == (cloud.member.current_user_id, cloud.member.current_project_id)


def test_a_delete_that_is_taken_up_is_the_request_that_it_was(cloud: Cloud, at_point: Any) -> None:
    seen: list[Any] = []

    def die_and_look_again() -> None:
        at_point("rpc.compute.remove_guest.request", lambda: seen.append(oslo_context.get_current()))
        raise SystemExit

    server = cloud.boot()
    at_point("rpc.compute.remove_guest.request", die_and_look_again)
    answer = cloud.member.compute.delete(f"/servers/{server.id}")
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    (context,) = seen
    assert context.request_id == answer.headers["x-openstack-request-id"]
    assert (context.user_id, context.project_id) == (cloud.member.current_user_id, cloud.member.current_project_id)


@pytest.mark.parametrize("is_taken_up", [False, True], ids=["deleted at once", "taken up"])
def test_a_volume_that_the_user_may_not_delete_stays_when_their_server_is_deleted(
    cloud: Cloud, dies_at: Any, is_taken_up: bool
) -> None:
    """An administrator gave it to the server, of a project of their own."""
    administrator, server = cloud.connection("admin"), cloud.boot()
    volume = administrator.block_storage.create_volume(size=1, name="of another project")
    administrator.block_storage.wait_for_status(volume, "available", interval=0.05)
    administrator.compute.create_volume_attachment(server.id, volume_id=volume.id, delete_on_termination=True)
    if is_taken_up:
        dies_at("rpc.compute.remove_guest.request")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert administrator.block_storage.get_volume(volume.id).status == "available"
    administrator.block_storage.delete_volume(volume)
    until(lambda: volumes_of_all(cloud), lambda left: not left, "the volume to go")


def test_without_the_users_token_nothing_is_made_for_the_service(cloud: Cloud, at_point: Any) -> None:
    """Who logs out takes the token along; the fault says what to do."""
    user = cloud.connection("demo")
    token = user.authorize()
    left = [True]

    def log_out_and_die() -> None:
        assert left.pop()
        cloud.admin.identity.delete("/auth/tokens", headers={"X-Subject-Token": token})
        raise SystemExit

    at_point(CHOOSE_HOST, log_out_and_die)
    server = ask_for(cloud, user)
    found = until(lambda: cloud.show(server), lambda found: found.status != "BUILD", "the build to end")
    assert found.status == "ERROR"
    assert "Delete this server and create it again" in found.fault["message"]
    assert volumes_of_all(cloud) == []
    assert cloud.ports(server) == {}
    deleted(cloud, server)


def test_the_token_is_kept_until_the_build_has_ended_and_nobody_can_read_it(
    cloud: Cloud, at_point: Callable[..., None]
) -> None:
    seen: list[Any] = []

    def look() -> None:
        with cloud.parts.api_database.read() as connection:
            seen.extend(connection.execute(sa.select(journal.OPERATIONS).where(IS_UNDER_WAY)).mappings())

    at_point(CHOOSE_HOST, look)
    user = cloud.connection("demo")
    token = user.authorize()
    cloud.wait(ask_for(cloud, user), "ACTIVE")
    cloud.settle()
    (row,) = seen
    assert row["sealed_token"]
    assert token not in str(dict(row))
    with cloud.parts.api_database.read() as connection:
        kept = sa.select(journal.OPERATIONS.c.requester, journal.OPERATIONS.c.sealed_token)
        assert set(connection.execute(kept).all()) == {(None, None)}
