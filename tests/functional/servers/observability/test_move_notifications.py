"""What consumers of versioned notifications hear of a server that moves: Nova's events, in its order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.notified import CONFIGURATION, heard_by

CLOUD = {"config_files": [str(CONFIGURATION)]}

EVENTS_OF_RESIZES = ("instance.resize", "instance.exists", "compute", "scheduler")


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
        found = [event for event, _publisher, _data in self.heard[start:] if event.startswith(EVENTS_OF_RESIZES)]
        # What different publishers say comes in no order.
        return sorted(found, key=lambda event: not event.startswith("scheduler."))


@pytest.fixture(scope="module")
def consumer(module_cloud: Cloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


def test_a_resize_and_its_confirm_are_notified_in_order(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    before, after = cloud.show(server).compute_host, cloud.resized(server).compute_host
    cloud.settle()
    until(
        lambda: consumer.types(start), lambda heard: "instance.resize_finish.end" in heard, "the resize to be notified"
    )
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
    reported = {event: (publisher, data) for event, publisher, data in consumer.heard[start:]}
    publisher, data = reported["instance.resize_prep.start"]
    assert publisher == f"nova-compute:{after}"
    assert data["new_flavor"]["nova_object.data"]["flavorid"] == "gen2.small"
    assert (data["state"], data["task_state"]) == ("active", "resize_prep")
    publisher, data = reported["instance.resize.start"]
    assert (publisher, data["task_state"]) == (f"nova-compute:{before}", "resize_migrating")
    publisher, data = reported["instance.resize_finish.end"]
    assert (publisher, data["state"], data["task_state"]) == (f"nova-compute:{after}", "resized", None)
    assert data["flavor"]["nova_object.data"]["flavorid"] == "gen2.small"

    start = len(consumer.heard)
    cloud.confirmed(server)
    until(lambda: consumer.types(start), lambda heard: len(heard) >= 2, "the confirm to be notified")
    assert consumer.types(start) == ["instance.resize_confirm.start", "instance.resize_confirm.end"]
    # Unless it is configured.
    assert "instance.update" not in {event for event, _publisher, _data in consumer.heard}


def test_a_revert_is_notified_in_order(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.settle()
    start = len(consumer.heard)
    cloud.reverted(server)
    until(lambda: consumer.types(start), lambda heard: len(heard) >= 3, "the revert to be notified")
    assert consumer.types(start) == ["instance.resize_revert.start", "instance.exists", "instance.resize_revert.end"]
    _event, _publisher, data = consumer.heard[-1]
    assert data["flavor"]["nova_object.data"]["flavorid"] == "gen1.small"


def test_a_resize_that_fails_is_notified_with_its_reason(cloud: Cloud, consumer: Consumer) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    cloud.without_patience()
    cloud.without_rounds()
    cloud.fail("status", "/file$", method="PUT", service="image", status=507)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.settle()
    until(
        lambda: consumer.types(start),
        lambda heard: "compute_task.migrate_server.error" in heard,
        "the failure to be notified",
    )
    reported = {event: data for event, _publisher, data in consumer.heard[start:]}
    failure = reported["compute_task.migrate_server.error"]
    assert failure["instance_uuid"] == server.id
    assert "image service" in failure["reason"]["nova_object.data"]["exception_message"]
    assert "instance.resize.end" not in reported


PREPARED = ["scheduler.select_destinations.start", "scheduler.select_destinations.end", "instance.exists"]
MOVED = [
    *PREPARED,
    *(f"instance.{step}.{phase}" for step in ("resize_prep", "resize", "resize_finish") for phase in ("start", "end")),
]
ROUTES = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])


def conductor_in(cloud: Cloud, reported: dict[str, tuple[str, dict[str, Any]]]) -> str:
    """The conductor that notified; by URL it is one of several, and only known not to be a compute."""
    if not cloud.by_url:
        return socket.gethostname()
    names = {publisher.removeprefix("nova-compute:") for publisher, _data in reported.values()}
    (name,) = names - set(cloud.parts.computes)
    return name


def heard_since(consumer: Consumer, start: int, count: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """event -> (publisher, payload) of what was heard of moves; waits for that many."""
    until(
        lambda: consumer.types(start),
        lambda heard: len(heard) >= count,
        f"{count} events; heard {consumer.types(start)}",
    )
    return {
        event: (publisher, data)
        for event, publisher, data in consumer.heard[start:]
        if event.startswith(EVENTS_OF_RESIZES)
    }


def flavor_of(data: dict[str, Any]) -> str:
    return str(data["flavor"]["nova_object.data"]["flavorid"])


@ROUTES
@pytest.mark.parametrize("kind", ["resize", "migrate"])
def test_payloads_show_the_server_on_its_way(cloud: Cloud, consumer: Consumer, flavor: str, kind: str) -> None:
    old = "gen1.small" if kind == "resize" else "any.medium"
    server, volume = cloud.boot(flavor=old), cloud.volume()
    cloud.attach(server, volume, tag="data")
    source = cloud.show(server).compute_host
    start = len(consumer.heard)
    if kind == "resize":
        target = cloud.resized(server, flavor).compute_host
    else:
        other = "cell1" if source.startswith("cell2") else "cell2"
        host = f"{other}-host1" if flavor == "gen2.small" else None
        cloud.admin.compute.migrate_server(server.id, host=host)
        target, flavor = cloud.wait(server, "VERIFY_RESIZE").compute_host, old
    cross = target[:5] != source[:5]
    cloud.settle()
    reported = heard_since(consumer, start, len(MOVED))
    assert consumer.types(start) == MOVED

    for event, publisher, where, states, shown in (
        ("instance.exists", target, source, ("active", "resize_prep"), old),
        ("instance.resize_prep.start", target, source, ("active", "resize_prep"), old),
        ("instance.resize_prep.end", target, source, ("active", "resize_prep"), old),
        ("instance.resize.start", source, source, ("active", "resize_migrating"), old),
        ("instance.resize.end", source, source if cross else target, ("active", "resize_migrated"), old),
        ("instance.resize_finish.start", target, source if cross else target, ("active", "resize_finish"), flavor),
        ("instance.resize_finish.end", target, target, ("resized", None), flavor),
    ):
        said_by, data = reported[event]
        assert said_by == f"nova-compute:{publisher}", event
        assert (data["host"], data["node"]) == (where, where), event
        assert (data["state"], data["task_state"]) == states, event
        assert flavor_of(data) == shown, event
        assert data["uuid"] == server.id and data["request_id"] == cloud.action(server, kind).request_id, event
        devices = data["block_devices"]
        if event.startswith(("instance.resize.", "instance.resize_finish.")):
            assert [each["nova_object.data"]["volume_id"] for each in devices] == [volume.id], event
            assert [each["nova_object.data"]["tag"] for each in devices] == ["data"], event
        else:
            assert devices is None, event
        assert [ip["nova_object.data"]["port_uuid"] for ip in data["ip_addresses"]] == list(cloud.ports(server)), event
    for phase in ("start", "end"):
        new = reported[f"instance.resize_prep.{phase}"][1]["new_flavor"]["nova_object.data"]
        assert new["flavorid"] == flavor
    period = reported["instance.exists"][1]["audit_period"]["nova_object.data"]
    assert period["audit_period_beginning"] < period["audit_period_ending"]


@ROUTES
def test_a_confirm_is_notified_by_novas_publishers(cloud: Cloud, consumer: Consumer, flavor: str) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.resized(server, flavor)
    cloud.settle()
    start = len(consumer.heard)
    target = cloud.confirmed(server).compute_host
    reported = heard_since(consumer, start, 2)
    conductor = conductor_in(cloud, reported) if source[:5] != target[:5] else source
    assert consumer.types(start) == ["instance.resize_confirm.start", "instance.resize_confirm.end"]
    assert {publisher for publisher, _data in reported.values()} == {f"nova-compute:{conductor}"}
    data = reported["instance.resize_confirm.end"][1]
    assert (data["state"], data["task_state"], data["host"], flavor_of(data)) == ("active", None, target, flavor)
    assert [data["block_devices"] for _publisher, data in reported.values()] == [None, None]


@ROUTES
def test_a_revert_is_notified_by_novas_publishers(cloud: Cloud, consumer: Consumer, flavor: str) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    source = cloud.show(server).compute_host
    target = cloud.resized(server, flavor).compute_host
    cross = target[:5] != source[:5]
    cloud.settle()
    start = len(consumer.heard)
    cloud.reverted(server)
    reported = heard_since(consumer, start, 3)
    begun = ["instance.resize_revert.start", "instance.exists"]
    assert consumer.types(start) == [*(begun if cross else begun[::-1]), "instance.resize_revert.end"]
    publisher = conductor_in(cloud, reported) if cross else source
    assert {event: said_by for event, (said_by, _data) in reported.items()} == {
        "instance.resize_revert.start": f"nova-compute:{publisher}",
        "instance.exists": f"nova-compute:{target}",
        "instance.resize_revert.end": f"nova-compute:{publisher}",
    }
    first, last = reported["instance.resize_revert.start"][1], reported["instance.resize_revert.end"][1]
    assert (first["state"], first["task_state"], flavor_of(first)) == ("resized", "resize_reverting", flavor)
    assert (last["state"], last["task_state"], last["host"]) == ("active", None, source)
    assert flavor_of(last) == "gen1.small"
    for data in (first, last):
        devices = data["block_devices"]
        assert devices is None if cross else [each["nova_object.data"]["volume_id"] for each in devices] == [volume.id]


@ROUTES
def test_a_host_that_refuses_is_reported(cloud: Cloud, consumer: Consumer, flavor: str) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    cloud.fail("status", "/bindings$", method="POST", service="network", status=400)
    cloud.member.compute.resize_server(server.id, flavor)
    cloud.failed(server)
    cloud.settle()
    until(
        lambda: consumer.types(start),
        lambda heard: "compute_task.migrate_server.error" in heard,
        "the failure to be notified",
    )
    heard = consumer.types(start)
    tried = ["instance.exists", "instance.resize_prep.start", "instance.resize.error", "instance.resize_prep.end"]
    hosts = heard.count("instance.resize.error")
    assert heard == [*PREPARED[:2], *tried * hosts, "compute_task.migrate_server.error"]
    reported = heard_since(consumer, start, 1)
    publisher, data = reported["instance.resize.error"]
    assert publisher == f"nova-compute:{cloud.migration(server).dest_compute}"
    assert data["fault"]["nova_object.data"]["exception"] == "ServiceRefused"
    assert "Traceback" in data["fault"]["nova_object.data"]["traceback"]


@ROUTES
def test_a_failure_behind_the_preparation_is_the_hosts_exception(cloud: Cloud, consumer: Consumer, flavor: str) -> None:
    server = cloud.boot()
    start = len(consumer.heard)
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = set(cloud.parts.computes) - {cloud.show(server).compute_host}
    cloud.member.compute.resize_server(server.id, flavor)
    cloud.failed(server)
    cloud.settle()
    reported = heard_since(consumer, start, len(MOVED) + 1)
    assert consumer.types(start) == [*MOVED[:-1], "compute.exception", "compute_task.migrate_server.error"]
    publisher, data = reported["compute.exception"]
    assert publisher == f"nova-compute:{cloud.migration(server).dest_compute}"
    assert "did not plug port" in data["exception_message"]


def test_a_delete_before_the_confirm_is_notified_as_any_other(cloud: Cloud, consumer: Consumer) -> None:
    """It is notified as any other delete: begun, its guest shut down, ended."""
    server = cloud.resized(cloud.boot())
    start = len(consumer.heard)
    cloud.member.compute.delete_server(server.id)

    def reported() -> list[str]:
        wanted = ("instance.delete.", "instance.shutdown.")
        return [event for event, _publisher, _data in consumer.heard[start:] if event.startswith(wanted)]

    until(reported, lambda events: "instance.delete.end" in events, "the delete to be notified")
    assert reported() == [
        "instance.delete.start",
        "instance.shutdown.start",
        "instance.shutdown.end",
        "instance.delete.end",
    ]
