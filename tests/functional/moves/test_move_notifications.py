"""What consumers of versioned notifications hear of a server that moves to another cell: the field's events, in its order."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
from moves_cloud import Cloud, until

CONFIGURATION = Path(tempfile.mkdtemp()) / "notifications.conf"
CONFIGURATION.write_text(
    "[notifications]\nnotification_format = versioned\n[oslo_messaging_notifications]\ndriver = messagingv2\n"
)
CLOUD = {"config_files": [str(CONFIGURATION)]}

TOLD_OF_RESIZES = ("instance.resize", "instance.exists", "compute_task", "scheduler")


class Consumer:
    """Hears what a billing system would hear."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.heard: list[tuple[str, str, dict[str, Any]]] = []

    def _note(self, publisher_id: str, event_type: str, payload: Any) -> None:
        with self._lock:
            self.heard.append((event_type, publisher_id, payload["nova_object.data"]))

    def info(self, _context: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        self._note(publisher_id, event_type, payload)

    def error(self, _context: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        self._note(publisher_id, event_type, payload)

    def types(self, start: int = 0) -> list[str]:
        return [event for event, _publisher, _data in self.heard[start:] if event.startswith(TOLD_OF_RESIZES)]


@pytest.fixture(scope="module")
def consumer(module_cloud: Cloud) -> Iterator[Consumer]:
    consumer = Consumer()
    listener = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(module_cloud.embedded.conf),
        [oslo_messaging.Target(topic="versioned_notifications")],
        [consumer],
        executor="threading",
    )
    listener.start()
    yield consumer
    listener.stop()
    listener.wait()


def test_a_resize_and_its_confirm(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    before, after = cloud.show(server).compute_host, cloud.resized(server).compute_host
    cloud.settle()
    until(lambda: consumer.types(start), lambda heard: "instance.resize_finish.end" in heard, "the resize to be told")
    assert consumer.types(start) == [
        "scheduler.select_destinations.start",
        "scheduler.select_destinations.end",
        "instance.exists",
        "instance.resize_prep.start",
        "instance.resize_prep.end",
        "instance.resize.start",
        "instance.resize.end",
        "instance.resize_finish.start",
        "instance.resize_finish.end",
    ]
    told = {event: (publisher, data) for event, publisher, data in consumer.heard[start:]}
    publisher, data = told["instance.resize_prep.start"]
    assert publisher == f"nova-compute:{after}"
    assert data["new_flavor"]["nova_object.data"]["flavorid"] == "gen2.small"
    assert (data["state"], data["task_state"]) == ("active", "resize_prep")
    publisher, data = told["instance.resize.start"]
    assert (publisher, data["task_state"]) == (f"nova-compute:{before}", "resize_migrating")
    publisher, data = told["instance.resize_finish.end"]
    assert (publisher, data["state"], data["task_state"]) == (f"nova-compute:{after}", "resized", None)
    assert data["flavor"]["nova_object.data"]["flavorid"] == "gen2.small"

    start = len(consumer.heard)
    cloud.confirmed(server)
    until(lambda: consumer.types(start), lambda heard: len(heard) >= 2, "the confirm to be told")
    assert consumer.types(start) == ["instance.resize_confirm.start", "instance.resize_confirm.end"]


def test_a_revert(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.settle()
    start = len(consumer.heard)
    cloud.reverted(server)
    until(lambda: consumer.types(start), lambda heard: len(heard) >= 3, "the revert to be told")
    assert consumer.types(start) == ["instance.resize_revert.start", "instance.exists", "instance.resize_revert.end"]
    _event, _publisher, data = consumer.heard[-1]
    assert data["flavor"]["nova_object.data"]["flavorid"] == "gen1.small"


def test_a_resize_that_fails(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    cloud.fail("status", "/file$", method="PUT", service="image", status=507)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.settle()
    until(
        lambda: consumer.types(start),
        lambda heard: "compute_task.migrate_server.error" in heard,
        "the failure to be told",
    )
    told = {event: data for event, _publisher, data in consumer.heard[start:]}
    failure = told["compute_task.migrate_server.error"]
    assert failure["instance_uuid"] == server.id
    assert "image service" in failure["reason"]["nova_object.data"]["exception_message"]
    assert "instance.resize.end" not in told
