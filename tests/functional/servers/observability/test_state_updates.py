"""What consumers hear of every change of a server's states, and of its block devices, if that is configured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.notified import CONFIGURATION, heard_by
from tests.functional.servers.observability.state_updates import Updates, deleted, stopped

CLOUD = {
    "config_files": [str(CONFIGURATION)],
    "overrides": {"notifications": {"notify_on_state_change": "vm_and_task_state", "bdms_in_notifications": True}},
}
API, CONDUCTOR = "nova-api", "nova-conductor"


@pytest.fixture(scope="module")
def module_updates(module_cloud: Cloud) -> Iterator[Updates]:
    updates = Updates()
    with heard_by(module_cloud.parts.conf, updates):
        yield updates


@pytest.fixture
def updates(module_updates: Updates) -> Updates:
    module_updates.clear()
    return module_updates


def test_a_server_is_notified_from_its_request_to_its_delete(cloud: Cloud, updates: Updates) -> None:
    server = cloud.boot()
    cloud.settle()
    assert updates.all(server, 3) == [
        (API, None, "building", None, "scheduling"),
        (CONDUCTOR, "building", "building", "scheduling", "spawning"),
        (CONDUCTOR, "building", "active", "spawning", None),
    ]
    updates.clear()
    stopped(cloud, server)
    assert updates.all(server, 2) == [
        (API, "active", "active", None, "powering-off"),
        (CONDUCTOR, "active", "stopped", "powering-off", None),
    ]
    updates.clear()
    deleted(cloud, server)
    assert updates.all(server, 2) == [
        (API, "stopped", "stopped", None, "deleting"),
        (CONDUCTOR, "stopped", "deleted", "deleting", None),
    ]


def test_a_resize_to_the_other_cell_is_one_chain_of_changes(cloud: Cloud, updates: Updates) -> None:
    server = cloud.boot()
    cloud.settle()
    updates.all(server, 3)
    updates.clear()
    cloud.resized(server)
    cloud.settle()
    assert updates.all(server, 4) == [
        (API, "active", "active", None, "resize_prep"),
        (CONDUCTOR, "active", "active", "resize_prep", "resize_migrating"),
        (CONDUCTOR, "active", "active", "resize_migrating", "resize_migrated"),
        (CONDUCTOR, "active", "resized", "resize_migrated", None),
    ]
    assert updates.payloads("instance.update", server)[-1][1]["host"].startswith("cell2-")
    updates.clear()
    cloud.confirmed(server)
    assert updates.all(server, 1) == [(CONDUCTOR, "resized", "active", None, None)]


def test_a_revert_in_the_other_cell_is_notified(cloud: Cloud, updates: Updates) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.settle()
    updates.all(server, 7)
    updates.clear()
    cloud.reverted(server)
    assert updates.all(server, 3) == [
        (API, "resized", "resized", None, "resize_reverting"),
        (CONDUCTOR, "resized", "active", "resize_reverting", "resize_reverting"),
        (CONDUCTOR, "active", "active", "resize_reverting", None),
    ]


def test_a_server_that_no_host_can_take_is_notified(cloud: Cloud, updates: Updates) -> None:
    flavor = cloud.flavor("nowhere", gen=9)
    given = {"image_id": cloud.image_id, "networks": [{"uuid": cloud.network_id}]}
    server = cloud.member.compute.create_server(name="server", flavor_id=flavor, **given)
    assert updates.all(server, 2) == [
        (API, None, "building", None, "scheduling"),
        (CONDUCTOR, "building", "error", "scheduling", None),
    ]


def test_a_rename_is_notified_with_both_names_and_the_user_who_asked(cloud: Cloud, updates: Updates) -> None:
    server = cloud.boot("before")
    updates.all(server, 3)
    updates.clear()
    answer = cloud.member.compute.put(f"/servers/{server.id}", json={"server": {"name": "after"}})
    data = updates.wait("instance.update", server)
    assert (data["old_display_name"], data["display_name"]) == ("before", "after")
    assert data["request_id"] == answer.headers["X-OpenStack-Request-ID"]
    assert data["action_initiator_user"] == cloud.member.current_user_id
    assert updates.of(server) == [(API, "active", "active", None, None)]


def test_block_devices_are_in_events_that_have_none_otherwise(cloud: Cloud, updates: Updates) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume, tag="data")
    cloud.resized(server)
    cloud.confirmed(server)
    events = ("update", "exists", "resize_prep.start", "resize_confirm.start", "resize_confirm.end")
    for event in events:
        updates.wait(f"instance.{event}", server)
        _publisher, data = updates.payloads(f"instance.{event}", server)[-1]
        devices = [each["nova_object.data"] for each in data["block_devices"]]
        assert [(each["volume_id"], each["tag"]) for each in devices] == [(volume.id, "data")], event
