"""What consumers hear of changes of VM states, where task states are not wanted."""

from __future__ import annotations

from typing import Any

from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.notified import CONFIGURATION, heard_by
from tests.functional.servers.observability.state_updates import Updates, deleted, stopped

CLOUD: dict[str, Any] = {
    "config_files": [str(CONFIGURATION)],
    "overrides": {"notifications": {"notify_on_state_change": "vm_state"}},
}


def test_only_changes_of_vm_states_are_notified_and_deletes_with_their_volumes(cloud: Cloud) -> None:
    updates = Updates()
    with heard_by(cloud.parts.conf, updates):
        server, volume = cloud.boot(), cloud.volume()
        cloud.attach(server, volume)
        cloud.resized(server)
        cloud.confirmed(server)
        stopped(cloud, server)
        deleted(cloud, server)
        changes = [(old, new) for _publisher, old, new, *_tasks in updates.all(server, 6)]
    assert changes == [
        (None, "building"),
        ("building", "active"),
        ("active", "resized"),
        ("resized", "active"),
        ("active", "stopped"),
        ("stopped", "deleted"),
    ]
    _publisher, data = updates.payloads("instance.update", server)[0]
    assert data["block_devices"] is None
    for event in ("delete.start", "shutdown.start", "shutdown.end", "delete.end"):
        # As in Nova, also where nothing is looked up.
        (device,) = updates.wait(f"instance.{event}", server)["block_devices"]
        assert device["nova_object.data"]["volume_id"] == volume.id, event
