"""A server's volumes and ports are not changed while it moves, and it does not begin to move while they are changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.api.servers import loading
from causeway.conductor.endpoints import devices as conductors
from causeway.requests import acceptance, asking
from tests.functional.servers.moves_cloud import Cloud, until


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """A request for a move does not wait for the end of a change that is held; by URL it waits for seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(acceptance, "DEVICE_PAUSES", ())
        yield


class Request:
    """A request in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.answers: list[Any] = []
        self._thread = threading.Thread(target=lambda: self.answers.append(call()))
        self.start = self._thread.start

    def __enter__(self) -> Request:
        return self

    def __exit__(self, *_failure: object) -> None:
        self._thread.join()


class Devices:
    """A server with a volume and a second port, and what can be asked of them."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.compute = cloud.member.compute
        self.present, self.other = cloud.volume(name="present"), cloud.volume(name="other")
        self.server = cloud.boot(flavor="gen1.small")
        self.port = cloud.member.network.create_port(network_id=cloud.network_id)
        assert self.attach(self.present.id).status_code == 200
        assert self.plug().status_code == 200
        self.ports = len(list(self.compute.server_interfaces(self.server)))

    def path(self, more: str) -> str:
        return f"/servers/{self.server.id}/{more}"

    def attach(self, volume_id: str | None = None) -> Any:
        body = {"volumeAttachment": {"volumeId": volume_id or self.other.id}}
        return self.compute.post(self.path("os-volume_attachments"), json=body)

    def detach(self) -> Any:
        return self.compute.delete(self.path(f"os-volume_attachments/{self.present.id}"))

    def update(self) -> Any:
        body = {"volumeAttachment": {"volumeId": self.present.id, "delete_on_termination": True}}
        return self.compute.put(self.path(f"os-volume_attachments/{self.present.id}"), json=body)

    def plug(self) -> Any:
        body = {"interfaceAttachment": {"port_id": self.port.id}}
        return self.compute.post(self.path("os-interface"), json=body)

    def plug_another(self) -> Any:
        body = {"interfaceAttachment": {"net_id": self.cloud.network_id}}
        return self.compute.post(self.path("os-interface"), json=body)

    def unplug(self) -> Any:
        return self.compute.delete(self.path(f"os-interface/{self.port.id}"))

    def act(self, **body: Any) -> Any:
        return self.compute.post(self.path("action"), json=body)

    def resize(self) -> Any:
        return self.act(resize={"flavorRef": "gen2.small"})

    def attached(self) -> set[str]:
        return {each.volume_id for each in self.compute.volume_attachments(self.server)}

    def plugged(self) -> int:
        return len(list(self.compute.server_interfaces(self.server)))

    def check(self, volumes: int = 1, more_ports: int = 0) -> None:
        """What the server has is attached and plugged, what it has not is free."""
        self.cloud.settle()
        attached = until(self.attached, lambda found: len(found) == volumes, f"{volumes} volumes")
        until(self.plugged, lambda found: found == self.ports + more_ports, f"{self.ports + more_ports} ports")
        for volume in (self.present, self.other):
            status = self.cloud.member.block_storage.get_volume(volume.id).status
            assert status == ("in-use" if volume.id in attached else "available")


CHANGES: dict[str, tuple[Callable[[Devices], Any], str | None, int, int]] = {
    # asks, what a compute is called, volumes and ports afterwards
    "attach": (Devices.attach, "connect_volume", 2, 0),
    "detach": (Devices.detach, "disconnect_volume", 0, 0),
    "plug": (Devices.plug_another, "plug_port", 1, 1),
    "unplug": (Devices.unplug, "unplug_port", 1, -1),
    "update": (Devices.update, None, 1, 0),
}
HELD = {name: change for name, change in CHANGES.items() if change[1] is not None}


@pytest.mark.parametrize("change", CHANGES)
def test_while_a_server_moves_its_devices_stay(cloud: Cloud, change: str) -> None:
    devices = Devices(cloud)
    with cloud.held("finish_snapshot_based_resize_at_dest") as reached:
        assert devices.resize().status_code == 202
        assert reached.wait(30)
        answer = CHANGES[change][0](devices)
        assert answer.status_code == 409 and "resize_migrated" in answer.text
    cloud.wait(devices.server, "VERIFY_RESIZE")
    devices.check()
    cloud.reverted(devices.server)
    devices.check()


@pytest.mark.parametrize("change", HELD)
def test_a_move_does_not_begin_while_devices_are_changed(cloud: Cloud, change: str) -> None:
    devices = Devices(cloud)
    ask, called, volumes, ports = CHANGES[change]
    assert called is not None
    with Request(lambda: ask(devices)) as request, cloud.held(called) as reached:
        request.start()
        assert reached.wait(30)
        refused = devices.resize()
        assert refused.status_code == 409 and "is being changed" in refused.text
        assert list(cloud.admin.compute.migrations(instance_uuid=devices.server.id)) == []
    assert request.answers[0].status_code in (200, 202)
    devices.check(volumes, ports)
    assert devices.resize().status_code == 202
    cloud.wait(devices.server, "VERIFY_RESIZE")
    devices.check(volumes, ports)


@pytest.mark.parametrize("change", CHANGES)
def test_a_move_that_begins_between_the_look_and_the_change_refuses_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    devices = Devices(cloud)
    done: list[int] = []
    # The last thing before it is written down.
    where, name = {
        "update": (loading, "change"),
        "attach": (conductors, "operation_of"),
        "plug": (conductors, "operation_of"),
    }.get(change, (asking, "operation_of"))
    commit = getattr(where, name)

    def changing(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(1)
            done.append(devices.resize().status_code)
        return commit(*arguments, **named)

    monkeypatch.setattr(where, name, changing)
    answer = CHANGES[change][0](devices)
    assert done == [1, 202]
    assert answer.status_code == 409
    cloud.wait(devices.server, "VERIFY_RESIZE")
    devices.check()


@pytest.mark.parametrize("change", HELD)
def test_a_change_that_begins_between_the_look_and_the_request_refuses_the_move(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    devices = Devices(cloud)
    ask, called, volumes, ports = CHANGES[change]
    assert called is not None
    propose, threads = acceptance._propose, list[Any]()

    with cloud.held(called) as reached:

        def after_the_change_began(*arguments: Any, **named: Any) -> None:
            if not threads:
                threads.append(threading.Thread(target=lambda: ask(devices)))
                threads[0].start()
                assert reached.wait(30)
            propose(*arguments, **named)

        monkeypatch.setattr(acceptance, "_propose", after_the_change_began)
        assert devices.resize().status_code == 409
    threads[0].join()
    devices.check(volumes, ports)
    assert cloud.show(devices.server).status == "ACTIVE"


@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_volumes_come_and_go_while_a_resize_waits_for_its_end(cloud: Cloud, end: str) -> None:
    devices = Devices(cloud)
    cloud.resized(devices.server)
    cloud.settle()
    with Request(devices.attach) as request, cloud.held("connect_volume") as reached:
        request.start()
        assert reached.wait(30)
        refused = devices.act(**{end: None})
        assert refused.status_code == 409 and "is being changed" in refused.text
    assert request.answers[0].status_code == 200
    devices.check(volumes=2)
    assert devices.detach().status_code == 202
    # Until the end the source keeps its reservation of what was there when the server left.
    until(devices.attached, lambda found: found == {devices.other.id}, "the volume to be detached")
    cloud.settle()
    third = cloud.volume(name="third")
    ordered = "confirm_snapshot_based_resize_at_source" if end == "confirmResize" else "drop_move_at_dest"
    with cloud.held(ordered) as reached:
        assert devices.act(**{end: None}).status_code in (202, 204)
        assert reached.wait(30)
        assert devices.attach(third.id).status_code == 409
    cloud.wait(devices.server, "ACTIVE")
    devices.check(volumes=1)
