"""A server that is deleted leaves nothing behind, whatever moves it at that moment."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway.model.operations import Operation
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until


def check_gone(cloud: Cloud, server: Any, volume: Any) -> None:
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert cloud.hosts_of(server) == {}
    assert cloud.ports(server) == {}
    assert cloud.attachments(server) == []
    assert cloud.member.block_storage.get_volume(volume.id).status == "available"
    assert cloud.temporary_images() == []
    assert cloud.allocations(server.id) == {}
    for migration in cloud.admin.compute.migrations(instance_uuid=server.id):
        assert cloud.allocations(migration.uuid) == {}
        assert migration.status in ("confirmed", "reverted", "error")


def server_and_volume(cloud: Cloud) -> tuple[Any, Any]:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    return server, volume


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_while_the_resize_waits_for_its_end(cloud: Cloud, flavor: str) -> None:
    server, volume = server_and_volume(cloud)
    cloud.resized(server, flavor)
    cloud.member.compute.delete_server(server.id)
    check_gone(cloud, server, volume)
    assert cloud.migration(server).status == "confirmed"
    history = {each.action: each for each in cloud.admin.compute.server_actions(server.id)}
    assert history["confirmResize"].request_id != history["delete"].request_id
    events = {
        name: [event["event"] for event in cloud.admin.compute.get_server_action(each.request_id, server.id).events]
        for name, each in history.items()
    }
    assert events["delete"] == ["compute_terminate_instance"]
    confirm = "conductor_confirm_snapshot_based_resize" if flavor == "gen2.small" else "compute_confirm_resize"
    assert confirm in events["confirmResize"]


@pytest.mark.parametrize(
    "method",
    [
        "select_destinations",
        "prep_snapshot_based_resize_at_dest",
        "begin_round",
        "receive_round",
        "prep_snapshot_based_resize_at_source",
        "finish_snapshot_based_resize_at_dest",
    ],
)
def test_a_server_is_deleted_while_a_step_of_its_resize_hangs(cloud: Cloud, method: str) -> None:
    server, volume = server_and_volume(cloud)
    with cloud.held(method) as reached:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert reached.wait(PATIENCE)
        cloud.member.compute.delete_server(server.id)
        assert cloud.show(server).task_state == "deleting"
    check_gone(cloud, server, volume)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_server_is_deleted_while_its_resize_is_confirmed_or_reverted(cloud: Cloud, end: str) -> None:
    server, volume = server_and_volume(cloud)
    cloud.resized(server)
    method = {"confirm": "confirm_snapshot_based_resize_at_source", "revert": "restore_at_source"}[end]
    act = cloud.member.compute.confirm_server_resize if end == "confirm" else cloud.member.compute.revert_server_resize
    with cloud.held(method) as reached:
        act(server.id)
        assert reached.wait(PATIENCE)
        cloud.member.compute.delete_server(server.id)
    check_gone(cloud, server, volume)
    assert cloud.migration(server).status == {"confirm": "confirmed", "revert": "reverted"}[end]
    # Whoever ended the move deleted the server, and for the request that asked for it.
    assert cloud.events(server, "delete") == [("compute_terminate_instance", "Success")]


def test_a_server_whose_move_failed_is_deleted(cloud: Cloud) -> None:
    server, volume = server_and_volume(cloud)
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=413)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.member.compute.delete_server(server.id)
    check_gone(cloud, server, volume)


def test_the_quota_is_free_again(cloud: Cloud) -> None:
    server, volume = server_and_volume(cloud)
    before = cloud.member.compute.get_limits().absolute.instances_used
    cloud.resized(server)
    assert cloud.member.compute.get_limits().absolute.instances_used == before
    cloud.member.compute.delete_server(server.id)
    check_gone(cloud, server, volume)
    assert cloud.member.compute.get_limits().absolute.instances_used == before - 1


@pytest.mark.embedded("looks at calls")
def test_a_server_that_is_deleted_while_it_is_built_leaves_nothing(cloud: Cloud) -> None:
    created, destroyed = [], threading.Event()

    def delete_meanwhile(message: Outgoing) -> Verdict:
        if message.method == "build_guest" and message.topic == "compute":
            # The host has not heard of the server yet: now its user deletes it, and nothing of it is there.
            server = next(iter(cloud.admin.compute.servers(all_projects=True)))
            created.append(server)
            cloud.admin.compute.delete_server(server.id)
        elif message.method in ("remove_guest", "undo_build") and created and cloud.hosts_of(created[0]):
            destroyed.set()
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = delete_meanwhile
    cloud.member.compute.create_server(
        name="short",
        flavor_id="gen1.small",
        image_id=cloud.image_id,
        networks="none",
    )
    assert destroyed.wait(20), "the guest that was made too late is not removed"
    until(lambda: cloud.admin.compute.find_server(created[0].id), lambda found: found is None, "the server to go")
    until(
        lambda: (cloud.hosts_of(created[0]), cloud.allocations(created[0].id), list(cloud.admin.network.ports())),
        lambda found: found == ({}, {}, []),
        "nothing to be left",
    )


@pytest.mark.parametrize("patience", [600.0, 0.0])
def test_a_delete_outlasts_a_hypervisor_that_fails(cloud: Cloud, patience: float) -> None:
    """It was answered with 204: the user never sees the server in ERROR."""
    server, volume = server_and_volume(cloud)
    cloud.option("patience", patience, "moves")
    cloud.option("attempts", 2, "moves")
    cloud.break_driver([cloud.show(server).compute_host], "destroy")
    cloud.member.compute.delete_server(server.id)

    def delete() -> Operation:
        return journal.of_server(cloud.parts.api_database, server.id)[-1]

    until(
        lambda: journal.steps(cloud.parts.api_database, delete().id),
        lambda steps: bool(steps) and steps[0].attempt > 3,
        "the delete to be retried",
    )
    assert cloud.show(server).task_state == "deleting"
    assert "hypervisor" in (delete().error or {})["message"]
    cloud.heal()
    check_gone(cloud, server, volume)
