"""What consumers of versioned notifications hear of a rescue and its end: Nova's events, in its order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.notified import CONFIGURATION, heard_by
from tests.functional.servers.rescued import make_image, rescued, unrescued

CLOUD = {"config_files": [str(CONFIGURATION)]}


class Consumer:
    """Hears what a billing system would hear."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: list[tuple[str, str, dict[str, Any]]] = []

    def info(self, _context: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        if event_type.startswith(("instance.rescue", "instance.unrescue", "instance.exists")):
            with self._lock:
                self._heard.append((event_type, publisher_id, payload))

    error = info

    def heard(self, server: Any, last: str) -> list[tuple[str, str, dict[str, Any]]]:
        """What was heard of the server, up to a last event. A queue by URL may still have notifications of earlier tests."""

        def of_server() -> list[tuple[str, str, dict[str, Any]]]:
            with self._lock:
                return [each for each in self._heard if each[2]["nova_object.data"]["uuid"] == server.id]

        def is_complete(found: list[tuple[str, str, dict[str, Any]]]) -> bool:
            return last in [event for event, _, _ in found]

        found: list[tuple[str, str, dict[str, Any]]] = until(of_server, is_complete, f"{last} to be notified")
        with self._lock:
            self._heard.clear()
        return found


@pytest.fixture(scope="module")
def consumer(module_cloud: Cloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


@pytest.mark.parametrize("is_named", [True, False])
def test_a_rescue_and_its_end(cloud: Cloud, consumer: Consumer, is_named: bool) -> None:
    server = cloud.boot()
    image_id = make_image(cloud).id if is_named else None
    rescued(cloud, server, **({"rescue_image_ref": image_id} if is_named else {}))
    reported = consumer.heard(server, "instance.rescue.end")
    assert [event for event, _, _ in reported] == ["instance.rescue.start", "instance.exists", "instance.rescue.end"]
    publisher = f"nova-compute:{cloud.show(server).compute_host}"
    assert {each for _, each, _ in reported} == {publisher}
    for _event, _publisher, payload in (reported[0], reported[-1]):
        assert (payload["nova_object.name"], payload["nova_object.version"]) == ("InstanceActionRescuePayload", "1.4")
        assert payload["nova_object.data"]["rescue_image_ref"] == image_id
    states = [payload["nova_object.data"]["state"] for _, _, payload in reported]
    assert states == ["active", "active", "rescued"]

    unrescued(cloud, server)
    reported = consumer.heard(server, "instance.unrescue.end")
    assert [event for event, _, _ in reported] == ["instance.unrescue.start", "instance.unrescue.end"]
    assert [payload["nova_object.name"] for _, _, payload in reported] == ["InstanceActionPayload"] * 2
    assert [payload["nova_object.data"]["state"] for _, _, payload in reported] == ["rescued", "active"]
