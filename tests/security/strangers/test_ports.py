"""A member of another project writes a server's id into their port. The server never gets the port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.clients.network import mark_of
from causeway.clients.port_owners import PortOwner
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import force_down, stop
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until

KIND = AuditedCloud
SERVER, PROJECT = "server", "project"


@pytest.mark.parametrize(
    ("port", "is_its"),
    [
        ({"id": "p", "device_id": SERVER, "project_id": PROJECT}, True),
        ({"id": "p", "device_id": SERVER, "tenant_id": PROJECT}, True),
        ({"id": "recorded", "device_id": SERVER, "project_id": "another"}, True),
        ({"id": "p", "device_id": SERVER, "project_id": "another"}, False),
        ({"id": "p", "device_id": SERVER, "project_id": ""}, False),
        ({"id": "p", "device_id": SERVER}, False),
        ({"id": "recorded", "device_id": "another", "project_id": PROJECT}, False),
        ({"id": "p", "device_id": "", "project_id": PROJECT}, False),
    ],
)
def test_whose_a_port_is(port: dict[str, Any], is_its: bool) -> None:
    assert PortOwner(SERVER, PROJECT, frozenset({"recorded"})).has(port) is is_its
    assert not PortOwner(SERVER, "", frozenset()).has(port)


@pytest.fixture
def stranger(cloud: Cloud) -> Iterator[Callable[..., Any]]:
    """Makes a port of another project that names a server, bound and up as if it were plugged somewhere."""
    other = cloud.connection("other")
    network = other.network.create_network(name="theirs")
    other.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.66.0.0/24", name="theirs")
    made: list[Any] = []

    def make(server: Any, *, is_active: bool, description: str = "") -> Any:
        port = other.network.create_port(network_id=network.id, name="theirs", description=description)
        other.network.update_port(port, device_id=server.id)
        if is_active:
            cloud.admin.network.update_port(port.id, binding_host_id=cloud.show(server).compute_host)
        made.append(port)
        return port

    yield make
    for port in made:
        cloud.admin.network.delete_port(port.id)
    other.network.delete_network(network)


def guests_ports(cloud: Cloud, server: Any) -> list[str]:
    """The ports that the guest really has, according to its hypervisor."""
    host = cloud.show(server).compute_host
    guest = cloud.driver(host).files.guests.get(server.id)
    assert guest is not None
    return [port.id for port in guest.ports]


def resized_across(cloud: Cloud, server: Any) -> None:
    cloud.confirmed(cloud.resized(server))


def reverted(cloud: Cloud, server: Any) -> None:
    cloud.reverted(cloud.resized(server))


def migrated(cloud: Cloud, server: Any) -> None:
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    cloud.confirmed(server)


def migrated_live(cloud: Cloud, server: Any) -> None:
    before = cloud.show(server).compute_host
    cloud.admin.compute.live_migrate_server(server.id, host=None, block_migration="auto")
    until(lambda: cloud.show(server).compute_host, lambda host: host != before, "the live migration")
    cloud.settle()
    cloud.wait(server, "ACTIVE")


def rebuilt(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.rebuild_server(server.id, image=cloud.image_id)
    cloud.settle()
    cloud.wait(server, "ACTIVE")


def rebooted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.settle()
    cloud.wait(server, "ACTIVE")


def unshelved(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")


def evacuated(cloud: Cloud, server: Any) -> None:
    host = cloud.show(server).compute_host
    stop(cloud.embedded, host)
    force_down(cloud.embedded, host, True)
    try:
        cloud.admin.compute.evacuate_server(server.id)
        until(lambda: cloud.show(server).compute_host, lambda found: found != host, "the evacuation")
        cloud.settle()
    finally:
        come_back(cloud, host)
    cloud.settle()


JOURNEYS = [evacuated, resized_across, reverted, migrated, migrated_live, rebuilt, rebooted, unshelved]


@pytest.mark.parametrize("is_active", [False, True], ids=["down", "active"])
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.__name__)
def test_a_strangers_port_is_not_plugged_and_holds_nothing_up(
    cloud: AuditedCloud, stranger: Callable[..., Any], journey: Callable[[Cloud, Any], None], is_active: bool
) -> None:
    server = cloud.boot()
    own = guests_ports(cloud, server)
    port = stranger(server, is_active=is_active)
    before = cloud.admin.network.get_port(port.id).binding_host_id
    journey(cloud, server)
    assert guests_ports(cloud, server) == own
    assert [vif.id for vif in cloud.record(server, cloud.show(server).compute_host[:5]).network_info] == own
    after = cloud.admin.network.get_port(port.id)
    assert (after.device_id, after.binding_host_id) == (server.id, before)
    assert [each.kind for each in cloud.audit().disagreements] == ["port.of_stranger"]


def test_a_stranger_s_port_is_shown_to_nobody_and_stays_when_the_server_goes(
    cloud: Cloud, stranger: Callable[..., Any]
) -> None:
    server = cloud.boot()
    own = guests_ports(cloud, server)
    port = stranger(server, is_active=True, description=mark_of(server.id))
    assert [each.port_id for each in cloud.interfaces(server)] == own
    assert cloud.member.compute.get(f"/servers/{server.id}/os-interface/{port.id}").status_code == 404
    assert cloud.member.compute.delete(f"/servers/{server.id}/os-interface/{port.id}").status_code == 404
    assert "theirs" not in cloud.show(server).addresses
    cloud.member.compute.delete_server(server.id)
    cloud.settle()
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.admin.network.get_port(port.id).device_id == server.id


def test_the_audit_reports_it(cloud: AuditedCloud, stranger: Callable[..., Any]) -> None:
    server = cloud.boot()
    port = stranger(server, is_active=False)
    found = cloud.only("port.of_stranger")
    assert (found.server, found.resource, found.fix) == (server.id, f"port {port.id}", None)
    assert found.left
