"""A build is broken off, or an answer is lost: what was made for its server is found again, is the server's, and goes with it.

Two conductors share the work. Who dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.clients.session import calls
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.dying_threads import SOON_TAKEN_OVER, THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = SOON_TAKEN_OVER
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]

MAKE_PORT = "call.network POST /v2.0/ports"
MAKE_VOLUME, RESERVE = "call.volume POST /v3/volumes", "call.volume POST /v3/attachments"
BUILD_GUEST = "rpc.compute.build_guest"


@pytest.fixture
def own_port(cloud: Cloud) -> Iterator[Any]:
    """A port of the user's, which outlives every server."""
    port = cloud.member.network.create_port(network_id=cloud.network_id)
    yield port
    cloud.member.network.delete_port(port)


@pytest.fixture
def own_volume(cloud: Cloud) -> Iterator[Any]:
    with cloud.own_volume() as volume:
        yield volume


def from_image(cloud: Cloud, *, delete_on_termination: bool = True) -> dict[str, Any]:
    return {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "volume_size": 1,
        "delete_on_termination": delete_on_termination,
    }


def local_root(cloud: Cloud) -> dict[str, Any]:
    return {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": cloud.image_id}


def ask_for(cloud: Cloud, *devices: dict[str, Any], networks: list[dict[str, Any]] | None = None) -> Any:
    asked = list(devices) or [local_root(cloud)]
    is_local = any(device["destination_type"] == "local" for device in asked)
    return cloud.member.compute.create_server(
        name="server",
        flavor_id="any.small",
        networks=networks or [{"uuid": cloud.network_id}],
        block_device_mapping=asked,
        **({"image_id": cloud.image_id} if is_local else {}),
    )


def failed(cloud: Cloud, server: Any) -> Any:
    found = until(lambda: cloud.show(server), lambda found: found.status != "BUILD", "the build to end")
    assert found.status == "ERROR"
    return found


def volumes_of_all(cloud: Cloud) -> set[str]:
    return {volume.id for volume in cloud.admin.block_storage.volumes(all_projects=True)}


def ports_of_network(cloud: Cloud) -> set[str]:
    return {port.id for port in cloud.admin.network.ports(network_id=cloud.network_id)}


def is_deleted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.ports(server) == {}
    assert cloud.attachments(server) == []
    assert cloud.hosts_of(server) == {}


@pytest.mark.parametrize(
    "point", [f"{MAKE_PORT}.reply", f"{MAKE_VOLUME}.reply", f"{RESERVE}.reply", f"{BUILD_GUEST}.request"]
)
@pytest.mark.parametrize("delete_on_termination", [True, False], ids=["doomed", "kept"])
def test_what_a_build_made_before_its_conductor_died_is_the_servers(
    cloud: Cloud, dies_at: Any, point: str, delete_on_termination: bool
) -> None:
    """It goes with the server, but for a volume that is to be kept."""
    ports, volumes = ports_of_network(cloud), volumes_of_all(cloud)
    dies_at(point)
    server = ask_for(cloud, from_image(cloud, delete_on_termination=delete_on_termination))
    cloud.wait(server, "ACTIVE")
    assert len(ports_of_network(cloud) - ports) == len(volumes_of_all(cloud) - volumes) == 1
    is_deleted(cloud, server)
    assert ports_of_network(cloud) == ports
    if not delete_on_termination:
        (kept,) = volumes_of_all(cloud) - volumes
        cloud.member.block_storage.delete_volume(kept)
    until(lambda: volumes_of_all(cloud), lambda left: left == volumes, "the volumes to go")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.parametrize("point", [f"{MAKE_PORT}.reply", f"{RESERVE}.reply", f"{BUILD_GUEST}.reply"])
def test_what_was_there_before_the_build_stays(
    cloud: Cloud, dies_at: Any, own_port: Any, own_volume: Any, point: str
) -> None:
    given = {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": own_volume.id}
    dies_at(point)
    networks = [{"port": own_port.id}, {"uuid": cloud.network_id}]
    server = ask_for(cloud, local_root(cloud), given, networks=networks)
    cloud.wait(server, "ACTIVE")
    assert len(cloud.interfaces(server)) == 2 and len(cloud.attachments(server)) == 1
    is_deleted(cloud, server)
    left = cloud.admin.network.get_port(own_port.id)
    assert (left.device_id, left.device_owner, left.binding_host_id) == ("", "", "")
    assert cloud.volume_becomes(own_volume, "available").status == "available"


def test_a_port_that_its_user_gave_to_the_server_behind_our_back_is_unbound_and_stays(
    cloud: Cloud, own_port: Any
) -> None:
    server = cloud.boot()
    cloud.member.network.update_port(own_port, device_id=server.id, device_owner="compute:mine")
    is_deleted(cloud, server)
    assert cloud.member.network.get_port(own_port.id).device_id == ""


def test_a_port_that_its_user_gave_to_another_server_behind_our_back_stays_with_that(
    cloud: Cloud, own_port: Any
) -> None:
    server, other = cloud.boot(networks=[{"port": own_port.id}]), cloud.boot()
    cloud.member.network.update_port(own_port, device_id=other.id)
    is_deleted(cloud, server)
    assert cloud.member.network.get_port(own_port.id).device_id == other.id
    is_deleted(cloud, other)


@pytest.mark.parametrize("path", ["/ports$", "/volumes$", "/attachments$"])
def test_what_was_made_though_the_answer_was_lost_is_taken(cloud: Cloud, path: str) -> None:
    """And nothing is made a second time."""
    ports, volumes = ports_of_network(cloud), volumes_of_all(cloud)
    cloud.fail("lose_reply", path, method="POST", times=1)
    server = cloud.wait(ask_for(cloud, from_image(cloud)), "ACTIVE")
    assert len(ports_of_network(cloud) - ports) == len(cloud.interfaces(server)) == 1
    assert len(volumes_of_all(cloud) - volumes) == len(cloud.attachments(server)) == 1
    is_deleted(cloud, server)
    assert ports_of_network(cloud) == ports
    until(lambda: volumes_of_all(cloud), lambda left: left == volumes, "the volumes to go")


@pytest.mark.parametrize("service", ["network", "volume"])
def test_a_build_that_fails_because_a_service_is_unavailable_says_so(cloud: Cloud, at_point: Any, service: str) -> None:
    """What can't be deleted then goes when the server is deleted."""
    ports, volumes = ports_of_network(cloud), volumes_of_all(cloud)
    at_point("rpc.scheduler.select_destinations.reply", lambda: cloud.fail("status", "", service=service))
    server = ask_for(cloud, from_image(cloud))
    found = failed(cloud, server)
    assert f"The {service} service failed" in found.fault["message"]
    cloud.parts.devcloud.faults.clear()
    is_deleted(cloud, server)
    assert ports_of_network(cloud) == ports
    until(lambda: volumes_of_all(cloud), lambda left: left == volumes, "the volumes to go")


@pytest.mark.parametrize("service", ["network", "volume"])
def test_what_can_not_be_released_goes_when_its_service_is_back(
    cloud: Cloud, at_point: Any, own_volume: Any, service: str
) -> None:
    """Its user sees at once that the server was not built, and has nothing to do for that."""
    cloud.option("stuck_retry_interval", 0.5, "moves")
    ports, volumes = ports_of_network(cloud), volumes_of_all(cloud)
    given = {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": own_volume.id}
    at_point(f"{BUILD_GUEST}.request", lambda: cloud.fail("status", "", service=service))
    server = ask_for(cloud, from_image(cloud), given)
    found = failed(cloud, server)
    assert f"The {service} service failed" in found.fault["message"]
    assert cloud.parts.placement.client().get_allocations(server.id).allocations
    cloud.parts.devcloud.faults.clear()
    cloud.settle()
    until(lambda: volumes_of_all(cloud), lambda left: left == volumes, "the volumes to go")
    assert ports_of_network(cloud) == ports
    assert not cloud.parts.placement.client().get_allocations(server.id).allocations
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    assert cloud.volume_becomes(own_volume, "reserved")
    assert f"The {service} service failed" in failed(cloud, server).fault["message"]
    is_deleted(cloud, server)


def test_a_server_runs_once_though_the_host_that_made_its_guest_gave_no_answer(cloud: Cloud) -> None:
    left = [Verdict.LOSE_REPLY]

    def on_send(message: Outgoing) -> Verdict:
        is_it = message.method == "build_guest" and message.topic == "compute"
        return left.pop() if is_it and left else Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    server = cloud.wait(ask_for(cloud), "ACTIVE")
    until(
        lambda: cloud.hosts_of(server), lambda hosts: hosts == {server.compute_host: "guest"}, "the first guest to go"
    )
    is_deleted(cloud, server)


# The first one was built, as nobody heard, and is destroyed later.
@pytest.mark.expects_errors("is started on .* while another host runs it")
@pytest.mark.parametrize("hears_of_it", [True, False], ids=["undone at once", "undone later"])
def test_no_guest_is_left_on_hosts_that_gave_no_answer(cloud: Cloud, hears_of_it: bool) -> None:
    def on_send(message: Outgoing) -> Verdict:
        if message.method == "build_guest" and message.topic == "compute":
            return Verdict.LOSE_REPLY
        is_lost = message.method == "undo_build" and not hears_of_it
        return Verdict.LOSE_REQUEST if is_lost else Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    server = ask_for(cloud)
    failed(cloud, server)
    cloud.parts.around.transports.on_send = None
    until(lambda: cloud.hosts_of(server), lambda hosts: not hosts, "the guests to go")
    is_deleted(cloud, server)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_delete_asks_once_for_the_servers_ports_and_for_nothing_else(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    before = calls.snapshot()
    is_deleted(cloud, server)
    after = calls.snapshot() - before
    assert after["network GET /v2.0/ports"] == after["network DELETE /v2.0/ports/{port_id}"] == 1
    asked = {key for key in after if key.startswith(("network", "volume"))}
    assert asked == {
        "network GET /v2.0/ports",
        "network DELETE /v2.0/ports/{port_id}",
        "volume DELETE /v3/attachments/{attachment_id}",
        "volume DELETE /v3/volumes/{volume_id}",
    }
