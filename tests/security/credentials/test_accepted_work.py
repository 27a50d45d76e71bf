"""Work that was accepted outlives its user's token: with our own credentials, for the ids that were checked, and no others.

Two conductors share the work. One that dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.model import operations
from causeway.requests.requesters import CHECKED
from causeway.store.api import journal
from tests.functional.servers.dying_threads import SOON_TAKEN_OVER, THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.security.credentials.attackers import Caller, caller, revoke

CLOUD = SOON_TAKEN_OVER
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]

CHOOSE_HOST = "rpc.scheduler.select_destinations.request"
RELEASE_ROOT = "rpc.compute.disconnect_volume.request"
REMOVE_GUEST = "rpc.compute.remove_guest.request"


@pytest.fixture
def user(cloud: Cloud) -> Caller:
    return caller(cloud, "demo")


@pytest.fixture
def ends(cloud: Cloud, user: Caller, at_point: Callable[..., None]) -> Callable[..., None]:
    """The token is revoked when a point is reached; ``dies``: and who works there is gone; ``and_then``: what happens too."""

    def arm(point: str, *, dies: bool = False, and_then: Callable[[], None] = lambda: None) -> None:
        def act() -> None:
            revoke(cloud, user)
            and_then()
            if dies:
                raise SystemExit

        at_point(point, act)

    return arm


def discard_checks(cloud: Cloud, *, is_former_release: bool = False) -> None:
    """As if nothing had been checked, or release 0.1.0 had accepted the operation."""
    with cloud.parts.api_database.write() as connection:
        for row in connection.execute(
            journal.OPERATIONS.select().where(journal.OPERATIONS.c.requester.is_not(None))
        ).all():
            stored = {**row.requester, CHECKED: []}
            if is_former_release:
                del stored[CHECKED]
            connection.execute(
                journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == row.id).values(requester=stored)
            )


def boot_with(cloud: Cloud, user: Caller, volume: Any, port: Any) -> Any:
    """Asks for a server with an image, a volume and a port that the user names."""
    flavor = cloud.admin.compute.find_flavor("gen1.small")
    devices = [
        {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": cloud.image_id},
        {"boot_index": None, "source_type": "volume", "destination_type": "volume", "uuid": volume.id},
    ]
    server = {
        "name": "server",
        "flavorRef": flavor.id,
        "imageRef": cloud.image_id,
        "networks": [{"port": port.id}],
        "block_device_mapping_v2": devices,
    }
    answer = user.ask("POST", "/servers", {"server": server})
    assert answer.status_code == 202, answer.text
    return cloud.admin.compute.get_server(answer.json()["server"]["id"])


def ended(cloud: Cloud, server: Any) -> Any:
    found = until(lambda: cloud.show(server), lambda found: found.status != "BUILD", "the build to end")
    cloud.settle()
    return found


@pytest.mark.parametrize("dies", [False, True], ids=["continued", "taken over"])
def test_a_build_continues_with_what_was_checked(cloud: Cloud, user: Caller, ends: Any, dies: bool) -> None:
    volume, port = cloud.volume(), cloud.member.network.create_port(network_id=cloud.network_id)
    ends(CHOOSE_HOST, dies=dies)
    server = cloud.wait(boot_with(cloud, user, volume, port), "ACTIVE")
    assert [each.volume_id for each in cloud.member.compute.volume_attachments(server.id)] == [volume.id]
    assert list(cloud.ports(server)) == [port.id]
    assert user.ask("POST", f"/servers/{server.id}/os-interface", {"interfaceAttachment": {}}).status_code == 401


@pytest.mark.parametrize("is_former_release", [False, True])
def test_a_build_does_not_continue_with_what_was_not_checked(
    cloud: Cloud, user: Caller, ends: Any, is_former_release: bool
) -> None:
    volume, port = cloud.volume(), cloud.member.network.create_port(network_id=cloud.network_id)
    # The conductor that dies has read the ids; the one that takes over reads them anew.
    ends(CHOOSE_HOST, dies=True, and_then=lambda: discard_checks(cloud, is_former_release=is_former_release))
    server = boot_with(cloud, user, volume, port)
    found = ended(cloud, server)
    assert found.status == "ERROR"
    assert "Log in again" in found.fault["message"]
    cloud.volume_becomes(volume, "available")
    assert cloud.ports(server) == {}
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda left: left is None, "the server to go")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


# What a request for a server may name, beside volumes.
NAMED: dict[str, Callable[[Cloud], dict[str, Any]]] = {
    "image": lambda cloud: {"imageRef": cloud.image_id, "networks": "none"},
    "port": lambda cloud: {
        "imageRef": cloud.image_id,
        "networks": [{"port": cloud.member.network.create_port(network_id=cloud.network_id).id}],
    },
    "network": lambda cloud: {"imageRef": cloud.image_id, "networks": [{"uuid": cloud.network_id}]},
}


@pytest.mark.parametrize("is_revoked", [True, False], ids=["revoked", "valid"])
@pytest.mark.parametrize("named", NAMED)
def test_what_was_not_checked_is_looked_at_with_the_users_token(
    cloud: Cloud, user: Caller, at_point: Any, named: str, is_revoked: bool
) -> None:
    """Hosts fetch images and ports are made with credentials that may use everything."""

    def die() -> None:
        with cloud.parts.api_database.read() as connection:
            rows = connection.execute(
                journal.OPERATIONS.select().where(journal.OPERATIONS.c.requester.is_not(None))
            ).all()
        (row,) = rows
        kept = set(row.requester[CHECKED])
        thing = {"image": cloud.image_id, "network": cloud.network_id}.get(named) or (
            kept - {cloud.image_id, cloud.member.current_project_id}
        ).pop()
        assert thing in kept
        with cloud.parts.api_database.write() as connection:
            stored = {**row.requester, CHECKED: sorted(kept - {thing})}
            connection.execute(
                journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == row.id).values(requester=stored)
            )
        if is_revoked:
            revoke(cloud, user)
        raise SystemExit

    at_point(CHOOSE_HOST, die)
    flavor = cloud.admin.compute.find_flavor("gen1.small")
    body = {"server": {"name": "server", "flavorRef": flavor.id, **NAMED[named](cloud)}}
    answer = user.ask("POST", "/servers", body)
    assert answer.status_code == 202, answer.text
    found = ended(cloud, cloud.admin.compute.get_server(answer.json()["server"]["id"]))
    assert found.status == ("ERROR" if is_revoked else "ACTIVE"), found.fault
    if is_revoked:
        assert "Log in again" in found.fault["message"]
        assert cloud.ports(found) == {}


@pytest.mark.parametrize("is_revoked", [True, False], ids=["revoked", "valid"])
@pytest.mark.parametrize(
    ("action", "point", "order"),
    [
        ("rebuild", "rebuild.RebuildGuest.do.before", "rebuild_guest"),
        ("rescue", "rescue.RescueGuest.do.before", "rescue_guest"),
    ],
)
def test_no_host_is_ordered_to_use_an_image_that_was_not_checked(
    cloud: Cloud, user: Caller, at_point: Any, action: str, point: str, order: str, is_revoked: bool
) -> None:
    """A conductor dies before it gives the order; the one that takes over reads what was kept."""
    server, ordered = cloud.boot(), []
    wanted = {"rebuild": {"imageRef": cloud.image_id}, "rescue": {"rescue_image_ref": cloud.image_id}}[action]

    def die() -> None:
        discard_checks(cloud)
        if is_revoked:
            revoke(cloud, user)
        at_point(f"rpc.compute.{order}.request", lambda: ordered.append(order))
        raise SystemExit

    at_point(point, die)
    assert user.ask("POST", f"/servers/{server.id}/action", {action: wanted}).status_code in (200, 202)
    until(lambda: cloud.show(server).task_state, lambda task: task is None, f"the {action} to end")
    cloud.settle()
    assert bool(ordered) is not is_revoked
    (error,) = [each.error for each in journal.of_server(cloud.parts.api_database, server.id) if each.recipe == action]
    assert ("Log in again" in error["message"]) if is_revoked and error else error is None


def test_the_checked_ids_are_kept_with_the_operation(cloud: Cloud, user: Caller, at_point: Any) -> None:
    volume, port = cloud.volume(), cloud.member.network.create_port(network_id=cloud.network_id)
    seen: list[set[str]] = []

    def look() -> None:
        with cloud.parts.api_database.read() as connection:
            rows = connection.execute(
                journal.OPERATIONS.select().where(journal.OPERATIONS.c.requester.is_not(None))
            ).all()
        seen.extend(set(row.requester[CHECKED]) for row in rows)

    at_point(CHOOSE_HOST, look)
    cloud.wait(boot_with(cloud, user, volume, port), "ACTIVE")
    assert seen == [{cloud.image_id, volume.id, port.id, cloud.member.current_project_id}]


@pytest.mark.parametrize("dies", [False, True], ids=["continued", "taken over"])
def test_an_image_that_was_checked_is_written_to_a_root_volume(
    cloud: Cloud, user: Caller, ends: Any, dies: bool
) -> None:
    server = cloud.boot_from_volume()
    ends(RELEASE_ROOT, dies=dies)
    answer = user.ask("POST", f"/servers/{server.id}/action", {"rebuild": {"imageRef": cloud.image_id}})
    assert answer.status_code == 202, answer.text
    cloud.wait(server, "ACTIVE")


def test_an_image_that_was_not_checked_is_not_written_to_a_root_volume(cloud: Cloud, user: Caller, ends: Any) -> None:
    server = cloud.boot_from_volume()
    ends(RELEASE_ROOT, dies=True, and_then=lambda: discard_checks(cloud))
    answer = user.ask("POST", f"/servers/{server.id}/action", {"rebuild": {"imageRef": cloud.image_id}})
    assert answer.status_code == 202, answer.text
    until(lambda: cloud.show(server), lambda found: found.task_state is None, "the rebuild to end")
    cloud.settle()
    made = journal.of_server(cloud.parts.api_database, server.id)
    (error,) = [each.error for each in made if each.recipe == operations.REBUILD_VOLUME]
    assert error is not None
    assert "Log in again" in error["message"]


@pytest.mark.parametrize("is_own", [True, False], ids=["own volume", "another project's"])
def test_a_delete_removes_only_volumes_of_the_servers_project(
    cloud: Cloud, user: Caller, ends: Any, is_own: bool
) -> None:
    """The volume was given to the server; an administrator can give it one of another project."""
    owner = cloud.member if is_own else cloud.connection("admin")
    volume = owner.block_storage.create_volume(size=1, name="given")
    owner.block_storage.wait_for_status(volume, "available", interval=0.05)
    server = cloud.boot()
    owner.compute.create_volume_attachment(server.id, volume_id=volume.id, delete_on_termination=True)
    ends(REMOVE_GUEST)
    assert user.ask("DELETE", f"/servers/{server.id}").status_code == 204
    until(lambda: cloud.admin.compute.find_server(server.id), lambda left: left is None, "the server to go")
    cloud.settle()
    if is_own:
        cloud.volume_goes(volume)
    else:
        assert owner.block_storage.get_volume(volume.id).status == "available"
        owner.block_storage.delete_volume(volume)


def test_a_rotation_deletes_no_backup_of_another_project(cloud: Cloud, user: Caller, ends: Any) -> None:
    """An administrator's backup of the server belongs to the project of that administrator."""
    server, admin = cloud.boot(), cloud.connection("admin")
    admin.compute.backup_server(server.id, "of the administrator", "daily", 5)
    cloud.wait(server, "ACTIVE")
    (theirs,) = [each for each in admin.image.images() if each.name == "of the administrator"]
    made = []
    for number in range(2):
        if number:
            ends("rpc.compute.upload_disk.request")
        backup = {"name": f"backup {number}", "backup_type": "daily", "rotation": 1}
        assert user.ask("POST", f"/servers/{server.id}/action", {"createBackup": backup}).status_code == 202
        made.append(backup["name"])
        cloud.wait(server, "ACTIVE")
        cloud.settle()
    names = {each.name for each in admin.image.images()}
    assert {theirs.name, made[1]} <= names
    assert made[0] not in names


@pytest.mark.parametrize(
    ("what", "point"),
    [
        ("volume", "rpc.conductor.add_volume.request"),
        ("volume", "call.volume POST /v3/attachments.request"),
        ("any network", "rpc.conductor.add_port.request"),
    ],
)
def test_an_attach_needs_the_token_to_its_end(cloud: Cloud, user: Caller, ends: Any, what: str, point: str) -> None:
    """Its user waits for the answer. The API has looked at the volume when the token is revoked."""
    server, volume = cloud.boot(), cloud.volume()
    before = cloud.ports(server)
    ends(point)
    if what == "volume":
        answer = user.ask(
            "POST", f"/servers/{server.id}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume.id}}
        )
    else:
        answer = user.ask("POST", f"/servers/{server.id}/os-interface", {"interfaceAttachment": {}})
    assert answer.status_code == 401, answer.text
    cloud.settle()
    cloud.volume_becomes(volume, "available")
    assert (cloud.attachments(server), cloud.ports(server)) == ([], before)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
