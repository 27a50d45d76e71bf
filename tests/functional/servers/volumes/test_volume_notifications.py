"""What consumers of versioned notifications hear of swaps of volumes, and of images that are cached ahead of time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.notified import CONFIGURATION, heard_by
from tests.functional.servers.volumes.moving_volumes import ask, moving, swapped

CLOUD = {"config_files": [str(CONFIGURATION)]}
Heard = tuple[str, str, dict[str, Any]]


class Consumer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: list[Heard] = []

    def info(self, _context: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        if event_type.startswith(("instance.volume_swap", "aggregate.cache_images")):
            with self._lock:
                self._heard.append((event_type, publisher_id, payload["nova_object.data"]))

    error = info

    def heard(self, last: str) -> list[Heard]:
        until(lambda: [event for event, _, _ in self._heard], lambda events: last in events, f"{last} to be notified")
        with self._lock:
            found, self._heard = self._heard, []
        return found


@pytest.fixture(scope="module")
def consumer(module_cloud: Cloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


@pytest.mark.parametrize("end", ["end", "error"])
def test_a_swap_is_notified_with_both_volumes(cloud: Cloud, consumer: Consumer, monkeypatch: Any, end: str) -> None:
    server, old = cloud.boot(), cloud.volume(name="old")
    cloud.attach(server, old)
    host = cloud.show(server).compute_host
    new = moving(cloud, old)
    if end == "end":
        swapped(cloud, server, old, new)
    else:

        def breaks(*_arguments: Any) -> None:
            raise errors.GuestFailed("The copy broke off.")

        monkeypatch.setattr(cloud.driver(host), "copy_volume", breaks)
        ask(cloud, server, old, new)
    reported = consumer.heard(f"instance.volume_swap.{end}")
    assert [event for event, _, _ in reported] == ["instance.volume_swap.start", f"instance.volume_swap.{end}"]
    assert {publisher for _, publisher, _ in reported} == {f"nova-compute:{host}"}
    assert {(data["old_volume_id"], data["new_volume_id"]) for _, _, data in reported} == {(old.id, new.id)}
    assert (reported[-1][2]["fault"] is None) is (end == "end")


def test_cached_images_are_notified_for_each_host(cloud: Cloud, consumer: Consumer) -> None:
    aggregate = cloud.admin.compute.create_aggregate(name="to-be-cached")
    hosts = ("cell1-host1", "cell2-host1")
    for host in hosts:
        cloud.admin.compute.add_host_to_aggregate(aggregate, host)
    nothing = "77777777-2222-3333-4444-555555555555"
    body = {"cache": [{"id": cloud.image_id}, {"id": nothing}]}
    cloud.admin.compute.post(f"/os-aggregates/{aggregate.id}/images", json=body, microversion="2.81")
    reported = consumer.heard("aggregate.cache_images.end")
    progress = [data for event, _, data in reported if event == "aggregate.cache_images.progress"]
    assert [event.rpartition(".")[2] for event, _, _ in reported] == ["start", "progress", "progress", "end"]
    assert {data["host"] for data in progress} == set(hosts)
    assert [(data["index"], data["total"]) for data in progress] == [(1, 2), (2, 2)]
    assert {(*data["images_cached"], *data["images_failed"]) for data in progress} == {(cloud.image_id, nothing)}
    for host in hosts:
        cloud.admin.compute.remove_host_from_aggregate(aggregate, host)
    cloud.admin.compute.delete_aggregate(aggregate)
