"""An order to a host is under way for so long that its sender abandoned it: what it does then is not wanted any more.

Attaches, detaches, builds and deletes: an order that was undone meanwhile, was repeated, or is of a conductor that lost the
operation does nothing when it arrives.
"""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.audit import audit_embedded
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import cleanups, journal
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 3},
        "conductor": {"recovery_interval": 2},
        "moves": {"lease": 1.5, "stuck_retry_interval": 0.5, "first_pause": 0.1},
    }
}
pytestmark = [
    pytest.mark.embedded("messages of this process are late"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("other"),
]


class Devices:
    """A server that others attach something to: a volume, or a port of its user's."""

    def __init__(self, cloud: Cloud, what: str) -> None:
        self.cloud, self.server, self.is_volume = cloud, cloud.boot(), what == "volume"
        self.host = cloud.show(self.server).compute_host
        make = cloud.volume if self.is_volume else self._port
        self.id = make().id
        self._path = f"/servers/{self.server.id}/{'os-volume_attachments' if self.is_volume else 'os-interface'}"

    def _port(self) -> Any:
        return self.cloud.member.network.create_port(network_id=self.cloud.network_id)

    def attach(self) -> int:
        body = (
            {"volumeAttachment": {"volumeId": self.id}}
            if self.is_volume
            else {"interfaceAttachment": {"port_id": self.id}}
        )
        return int(self.cloud.member.compute.post(self._path, json=body, connect_retries=0).status_code)

    def detach(self) -> int:
        return int(self.cloud.member.compute.delete(f"{self._path}/{self.id}").status_code)

    def settled(self) -> None:
        unfinished = self.cloud.parts.cells.api
        until(
            lambda: [move for move in journal.unfinished(unfinished) if move.instance_uuid == self.server.id],
            lambda found: not found,
            "the change to be settled",
        )

    def check(self, *, attached: bool) -> None:
        """Guest, records and services agree."""
        guest = self.cloud.driver(self.host).files.guests.get(self.server.id)
        assert guest is not None
        had = {each.volume_id for each in guest.volumes} if self.is_volume else {each.id for each in guest.ports}
        assert (self.id in had) == attached
        if not self.is_volume:
            bound_to = self.cloud.admin.network.get_port(self.id).binding_host_id
            assert bound_to == (self.host if attached else "")
        assert audit_embedded(self.cloud.parts, pause=0.01).disagreements == []


ATTACHES = {"volume": ("connect_volume", "attach_volume"), "port": ("plug_port", "attach_interface")}
DETACHES = {"volume": ("disconnect_volume", "detach_volume"), "port": ("unplug_port", "detach_interface")}


@pytest.mark.parametrize("what", ATTACHES)
def test_what_was_not_attached_in_time_is_not_attached_later(cloud: Cloud, what: str) -> None:
    devices = Devices(cloud, what)
    late = cloud.delay(*ATTACHES[what])
    assert devices.attach() >= 500
    devices.settled()
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    devices.check(attached=False)


@pytest.mark.parametrize("what", ATTACHES)
def test_a_late_attach_does_not_meddle_with_the_next_one(cloud: Cloud, what: str) -> None:
    devices = Devices(cloud, what)
    late = cloud.delay(*ATTACHES[what])
    assert devices.attach() >= 500
    devices.settled()
    assert devices.attach() == 200
    assert devices.detach() == 202
    devices.settled()
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    devices.check(attached=False)


@pytest.mark.parametrize("what", DETACHES)
def test_a_late_detach_takes_nothing_that_was_attached_since(cloud: Cloud, what: str) -> None:
    """It was repeated, and carried out then."""
    devices = Devices(cloud, what)
    assert devices.attach() == 200
    late = cloud.delay(*DETACHES[what])
    assert devices.detach() == 202
    devices.settled()
    devices.check(attached=False)
    assert devices.attach() == 200
    late.arrives()
    devices.check(attached=True)


@pytest.mark.parametrize("what", ATTACHES)
def test_an_attach_of_a_conductor_that_lost_it_is_refused(cloud: Cloud, what: str) -> None:
    devices = Devices(cloud, what)
    late = cloud.delay(*ATTACHES[what], sender_dies=True)
    assert devices.attach() >= 500
    devices.settled()
    with pytest.raises(errors.CausewayError) as refusal:
        late.arrives()
    assert isinstance(refusal.value, errors.TakenOver | errors.ClaimRefused)
    devices.check(attached=False)


# builds

BUILD, UNDO = ("build_guest", "build_instance"), ("undo_build", "destroy_instance")


def ask_for(cloud: Cloud) -> Any:
    return cloud.member.compute.create_server(
        name="server", flavor_id="any.small", image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )


def check_built(cloud: Cloud, server: Any) -> None:
    cloud.settle()
    host = cloud.show(server).compute_host
    assert cloud.hosts_of(server) == {host: "guest"}
    (port,) = cloud.admin.network.ports(device_id=server.id)
    assert port.binding_host_id == host
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_guest_that_an_alternate_has_made_is_not_made_a_second_time(cloud: Cloud) -> None:
    late = cloud.delay(*BUILD)
    server = cloud.wait(ask_for(cloud), "ACTIVE")
    assert late.message is not None and late.message.server != server.compute_host
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    check_built(cloud, server)


def test_a_guest_that_is_built_is_not_destroyed_by_a_conductor_that_lost_the_build(cloud: Cloud) -> None:
    """It heard nothing of its build, had it undone and died; who took the build over built on the same host."""
    late = cloud.delay(*UNDO, sender_dies=True)
    deliver, left = cloud.parts.around.transports.on_send, [Verdict.LOSE_REPLY]

    def on_send(message: Outgoing) -> Verdict:
        is_first = message.method in BUILD and message.topic == "compute" and left
        return left.pop() if is_first else deliver(message)

    cloud.parts.around.transports.on_send = on_send
    server = cloud.wait(ask_for(cloud), "ACTIVE")
    assert late.message is not None and late.message.server == server.compute_host
    with pytest.raises(errors.TakenOver):
        late.arrives()
    check_built(cloud, server)


def test_a_guest_is_not_made_by_a_conductor_that_lost_the_build(cloud: Cloud) -> None:
    late = cloud.delay(*BUILD, sender_dies=True)
    server = cloud.wait(ask_for(cloud), "ACTIVE")
    with pytest.raises(errors.TakenOver):
        late.arrives()
    check_built(cloud, server)


def test_a_host_with_a_newer_order_makes_no_guest_that_was_ordered_before(cloud: Cloud) -> None:
    """No host answered: neither when it was to make the guest, nor when it was to destroy it."""
    late = cloud.delay(*BUILD)
    deliver = cloud.parts.around.transports.on_send

    def on_send(message: Outgoing) -> Verdict:
        if message.topic == "compute" and message.method in BUILD + UNDO:
            deliver(message)
            return Verdict.LOSE_REQUEST
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    server = ask_for(cloud)
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to fail")
    assert late.message is not None and late.message.server is not None
    host = late.message.server
    assert cleanups.listed(cloud.parts.api_database, host) != []
    cloud.parts.around.transports.on_send = None
    until(lambda: cleanups.listed(cloud.parts.api_database, host), lambda left: not left, "the host to be notified")
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    assert cloud.hosts_of(server) == {}


def test_a_late_delete_finds_that_it_was_carried_out(cloud: Cloud) -> None:
    server = cloud.boot()
    late = cloud.delay("remove_guest")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    late.arrives()
    assert cloud.hosts_of(server) == {}
