"""A conductor or a host dies in the middle of an attach or detach: another conductor takes it over.

An attach that nobody was notified of at its end is undone; a detach, which was accepted, is carried out. Then guest,
records and services agree, and the user can do it again. Two conductors share the work. Who dies is a thread that ends where it
stands: nobody hears of it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.conductor.service import ConductorService
from causeway.model.operations import Operation
from causeway.requests import acceptance
from causeway.store.api import journal
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import Hold

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 3},
        "conductor": {"recovery_interval": 2},
        "moves": {"lease": 1.5, "stuck_retry_interval": 0.5, "first_pause": 0.1},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]

RESERVE, CONNECT = "call.volume POST /v3/attachments", "call.volume PUT /v3/attachments/{attachment_id}"
RELEASE = "call.volume DELETE /v3/attachments/{attachment_id}"
MAKE_PORT, BIND_PORT = "call.network POST /v2.0/ports", "call.network PUT /v2.0/ports/{port_id}"
DELETE_PORT = "call.network DELETE /v2.0/ports/{port_id}"


class Devices:
    """A server, a volume and a port, and what can be done with them."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.compute = cloud, cloud.member.compute
        self.server = cloud.boot()
        self.volume = cloud.volume()
        self.port = cloud.member.network.create_port(network_id=cloud.network_id)
        self.own = {each.id for each in cloud.member.network.ports(device_id=self.server.id)}

    def _ask(self, method: str, more: str, body: Any = None) -> int:
        answer = self.compute.request(
            f"/servers/{self.server.id}/{more}", method, json=body, raise_exc=False, connect_retries=0
        )
        return int(answer.status_code)

    def attach(self) -> int:
        return self._ask("POST", "os-volume_attachments", {"volumeAttachment": {"volumeId": self.volume.id}})

    def detach(self) -> int:
        return self._ask("DELETE", f"os-volume_attachments/{self.volume.id}")

    def plug(self) -> int:
        return self._ask("POST", "os-interface", {"interfaceAttachment": {"port_id": self.port.id}})

    def plug_new(self) -> int:
        return self._ask("POST", "os-interface", {"interfaceAttachment": {"net_id": self.cloud.network_id}})

    def unplug(self) -> int:
        return self._ask("DELETE", f"os-interface/{self.port.id}")

    def unplug_new(self) -> int:
        (made,) = self._plugged() - self.own
        return self._ask("DELETE", f"os-interface/{made}")

    def _plugged(self) -> set[str]:
        return {each.port_id for each in self.compute.server_interfaces(self.server)}

    def under_way(self) -> list[Operation]:
        unfinished = journal.unfinished(self.cloud.parts.cells.api)
        return [move for move in unfinished if move.instance_uuid == self.server.id]

    def settled(self) -> None:
        until(self.under_way, lambda found: not found, "the change to be settled")

    def of_guest(self) -> tuple[set[str | None], set[str]]:
        """The volumes and the ports that the hypervisor's guest has."""
        guest = self.cloud.driver(self.cloud.show(self.server).compute_host).files.guests.get(self.server.id)
        assert guest is not None
        return {each.volume_id for each in guest.volumes}, {each.id for each in guest.ports}

    def check(self, *, volume: bool = False, port: bool = False, new: bool = False) -> None:
        """All agree that the server has the volume, its user's own port, and one more that was made for it; or has not."""
        cloud, server = self.cloud, self.server
        volumes, ports = self.of_guest()
        assert volumes == ({self.volume.id} if volume else set())
        assert ports == self._plugged()
        assert {each.volume_id for each in self.compute.volume_attachments(server)} == volumes
        status = "in-use" if volume else "available"
        assert cloud.member.block_storage.get_volume(self.volume.id).status == status
        assert len(cloud.attachments(server)) == len(volumes)
        assert {each.id for each in cloud.admin.network.ports(device_id=server.id)} == ports
        assert (self.port.id in ports) == port
        assert len(ports - self.own - {self.port.id}) == (1 if new else 0)
        shown = cloud.admin.network.get_port(self.port.id)
        assert shown.binding_host_id == (cloud.show(server).compute_host if port else "")
        assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


ATTACHING = [
    f"{RESERVE}.request",
    f"{RESERVE}.reply",
    f"{CONNECT}.reply",
    "driver.attach_volume.after",
    "rpc.compute.connect_volume.reply",
]


@pytest.mark.parametrize("point", ATTACHING)
def test_an_attach_of_a_volume_is_undone(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    dies_at(point)
    assert devices.attach() >= 500
    devices.settled()
    devices.check()
    assert "Error" in {result for _event, result in cloud.events(devices.server, "attach_volume")}
    assert devices.attach() == 200
    devices.check(volume=True)


@pytest.mark.parametrize(
    "point", ["driver.detach_volume.after", "rpc.compute.disconnect_volume.reply", f"{RELEASE}.reply"]
)
def test_a_detach_of_a_volume_is_carried_out(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    assert devices.attach() == 200
    dies_at(point)
    assert devices.detach() == 202
    devices.settled()
    devices.check()
    assert ("compute_detach_volume", "Success") in cloud.events(devices.server, "detach_volume")
    assert devices.attach() == 200
    devices.check(volume=True)


@pytest.mark.parametrize(
    "point", [f"{BIND_PORT}.reply", "driver.attach_interface.after", "rpc.compute.plug_port.reply"]
)
def test_a_users_own_port_is_unplugged_and_stays(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    dies_at(point)
    assert devices.plug() >= 500
    devices.settled()
    devices.check()
    assert "Error" in {result for _event, result in cloud.events(devices.server, "attach_interface")}
    assert devices.plug() == 200
    devices.check(port=True)


@pytest.mark.parametrize(
    "point", [f"{MAKE_PORT}.reply", "driver.attach_interface.after", "rpc.compute.plug_port.reply"]
)
def test_a_port_that_was_made_is_deleted(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    assert devices.plug() == 200
    dies_at(point)
    assert devices.plug_new() >= 500
    devices.settled()
    devices.check(port=True)
    assert devices.plug_new() == 200
    devices.check(port=True, new=True)


@pytest.mark.parametrize(
    "point", ["driver.detach_interface.after", "rpc.compute.unplug_port.reply", f"{BIND_PORT}.reply"]
)
def test_a_users_own_port_is_unplugged_as_accepted(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    assert devices.plug() == 200
    dies_at(point)
    assert devices.unplug() == 202
    devices.settled()
    devices.check()
    assert ("compute_detach_interface", "Success") in cloud.events(devices.server, "detach_interface")
    assert devices.plug() == 200
    devices.check(port=True)


@pytest.mark.parametrize("point", ["driver.detach_interface.after", f"{DELETE_PORT}.reply"])
def test_a_port_that_was_made_is_deleted_as_accepted(cloud: Cloud, dies_at: Any, point: str) -> None:
    devices = Devices(cloud)
    assert devices.plug_new() == 200
    dies_at(point)
    assert devices.unplug_new() == 202
    devices.settled()
    devices.check()
    assert devices.plug_new() == 200
    devices.check(new=True)


def test_a_detach_that_no_conductor_heard_of_is_carried_out(cloud: Cloud) -> None:
    devices = Devices(cloud)
    assert (devices.attach(), devices.plug()) == (200, 200)
    cloud.lose("run_move", times=2)
    assert (devices.detach(), devices.unplug()) == (202, 202)
    devices.settled()
    devices.check()


def test_a_host_that_does_not_answer_is_asked_until_it_does(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "DEVICE_PAUSES", ())
    devices = Devices(cloud)
    assert devices.attach() == 200
    cloud.lose("disconnect_volume", times=8)
    assert devices.detach() == 202
    until(lambda: cloud.parts.around.transports.on_send is not None, bool, "the requests to be lost")
    refused = devices.compute.post(f"/servers/{devices.server.id}/action", json={"resize": {"flavorRef": "gen2.small"}})
    assert refused.status_code == 409 and "is being changed" in refused.text
    devices.settled()
    devices.check()


def test_an_unavailable_service_is_waited_for(cloud: Cloud) -> None:
    """The guest released the volume, and the volume service did not hear of it."""
    devices = Devices(cloud)
    assert devices.attach() == 200
    cloud.fail("status", "/attachments/", method="DELETE", service="volume", times=8)
    assert devices.detach() == 202
    until(devices.of_guest, lambda found: found[0] == set(), "the guest to release it")
    assert devices.under_way() != []
    devices.settled()
    devices.check()


def test_the_guest_releases_a_volume_that_could_not_be_completed(cloud: Cloud) -> None:
    devices = Devices(cloud)
    cloud.fail("status", "/action$", method="POST", service="volume", times=8)
    assert devices.attach() >= 500
    devices.check()


def test_a_host_that_is_forced_down_is_waited_for(cloud: Cloud, dies_at: Any) -> None:
    """Its guest may have the volume, and comes back with it."""
    devices = Devices(cloud)
    assert devices.attach() == 200
    dies_at("rpc.compute.disconnect_volume.reply")
    (service,) = cloud.admin.compute.services(host=cloud.show(devices.server).compute_host, binary="nova-compute")
    assert devices.detach() == 202
    (before,) = devices.under_way()
    cloud.admin.compute.update_service_forced_down(service, forced=True)
    try:
        until(devices.under_way, lambda found: found[0].epoch > before.epoch + 1, "a conductor to look at it again")
    finally:
        cloud.admin.compute.update_service_forced_down(service, forced=False)
    devices.settled()
    devices.check()


def test_what_was_reserved_for_a_server_that_is_deleted_is_free(cloud: Cloud, dies_at: Any) -> None:
    devices = Devices(cloud)
    dies_at(f"{RESERVE}.reply")
    assert devices.attach() >= 500
    cloud.member.compute.delete_server(devices.server.id)
    until(lambda: cloud.admin.compute.find_server(devices.server.id), lambda found: found is None, "the server to go")
    devices.settled()
    cloud.volume_becomes(devices.volume, "available")
    assert cloud.attachments(devices.server) == []
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_server_that_is_being_deleted_gets_no_volume(cloud: Cloud, at_point: Any) -> None:
    """The delete has read which volumes it has to release, and the guest is gone: an attach would succeed without it."""
    devices = Devices(cloud)
    attach = Hold(at_point, f"{RESERVE}.reply")
    with ThreadPoolExecutor(1) as users:
        attached = users.submit(devices.attach)
        assert attach.reached.wait(10)
        delete = Hold(at_point, "call.network GET /v2.0/ports.request")
        cloud.member.compute.delete_server(devices.server.id)
        assert delete.reached.wait(10)
        attach.opened.set()
        assert attached.result(20) >= 400
        delete.opened.set()
    until(lambda: cloud.admin.compute.find_server(devices.server.id), lambda found: found is None, "the server to go")
    devices.settled()
    assert cloud.attachments(devices.server) == []
    assert cloud.volume_becomes(devices.volume, "available").status == "available"


def test_a_detach_ends_what_a_resize_keeps_for_its_revert(cloud: Cloud, dies_at: Any) -> None:
    """The source has reserved the volume; the conductor dies while it is detached at the target."""
    devices = Devices(cloud)
    assert devices.attach() == 200
    cloud.resized(devices.server)
    cloud.settle()
    dies_at("driver.detach_volume.after")
    assert devices.detach() == 202
    devices.settled()
    assert cloud.attachments(devices.server) == []
    cloud.reverted(devices.server)
    devices.check()


def test_two_requests_do_not_change_the_same_volume_at_once(cloud: Cloud) -> None:
    devices = Devices(cloud)
    assert devices.attach() == 200
    with ThreadPoolExecutor(1) as thread, cloud.held("disconnect_volume") as reached:
        first = thread.submit(devices.detach)
        assert reached.wait(10)
        assert devices.detach() == 409
    assert first.result() == 202
    devices.settled()
    devices.check()


@pytest.mark.parametrize(
    ("operation", "point"),
    [
        ("attach", f"{RESERVE}.reply"),
        ("attach", f"{RESERVE}.request"),
        ("plug", "rpc.compute.plug_port.request"),
        ("attach", "rpc.compute.connect_volume.request"),
        ("plug_new", f"{MAKE_PORT}.request"),
    ],
)
def test_who_was_only_slow_finds_out(
    cloud: Cloud, other: ConductorService, at_point: Any, operation: str, point: str
) -> None:
    """Another conductor takes the operation over, and undoes it, while the first is at it; it did its last call too late."""
    # The whole takeover happens while the API waits for the answer; nobody dies.
    cloud.option("rpc_response_timeout", 60)
    devices = Devices(cloud)
    taken = []

    def take_over() -> None:
        (move,) = devices.under_way()
        taken.append(move)
        with cloud.parts.cells.api.write() as connection:
            connection.execute(
                journal.OPERATIONS.update().values(owner="a-dead/life").where(journal.OPERATIONS.c.id == move.id)
            )
        devices.settled()

    at_point(point, take_over)
    assert getattr(devices, operation)() == 409
    assert len(taken) == 1
    keepers = [cloud.parts.conductor._keeper, other._keeper]
    until(lambda: any(each.is_busy for each in keepers), lambda busy: not busy, "what came too late to be undone")
    devices.check()


def test_what_came_too_late_is_left_if_the_user_did_it_again(
    cloud: Cloud, other: ConductorService, at_point: Any
) -> None:
    # The whole takeover happens while the API waits for the answer; nobody dies.
    cloud.option("rpc_response_timeout", 60)
    devices = Devices(cloud)

    def take_over_and_do_it_again() -> None:
        (move,) = devices.under_way()
        with cloud.parts.cells.api.write() as connection:
            connection.execute(
                journal.OPERATIONS.update().values(owner="a-dead/life").where(journal.OPERATIONS.c.id == move.id)
            )
        devices.settled()
        assert devices.attach() == 200

    at_point(f"{RESERVE}.request", take_over_and_do_it_again)
    assert devices.attach() == 409
    keepers = [cloud.parts.conductor._keeper, other._keeper]
    until(lambda: any(each.is_busy for each in keepers), lambda busy: not busy, "what came too late to be undone")
    devices.check(volume=True)
