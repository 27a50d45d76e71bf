"""Actions addFixedIp and removeFixedIp: addresses that a server gets and loses while it is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until

LAST = "2.43"
NOBODYS = "99999999-2222-3333-4444-555555555555"


def act(cloud: Cloud, server: Any, action: str, version: str = LAST, **arguments: str) -> Any:
    return cloud.member.compute.post(f"/servers/{server.id}/action", json={action: arguments}, microversion=version)


def add(cloud: Cloud, server: Any, network_id: str | None = None) -> Any:
    return act(cloud, server, "addFixedIp", networkId=network_id or cloud.network_id)


def remove(cloud: Cloud, server: Any, address: str) -> Any:
    return act(cloud, server, "removeFixedIp", address=address)


def addresses(cloud: Cloud, server: Any) -> list[str]:
    """As the network service has them."""
    return [each["ip_address"] for port in cloud.ports(server) for each in cloud.admin.network.get_port(port).fixed_ips]


def shown(cloud: Cloud, server: Any) -> list[str]:
    return [each["addr"] for of_network in cloud.show(server).addresses.values() for each in of_network]


def both_soon(cloud: Cloud, server: Any, count: int) -> list[str]:
    found = addresses(cloud, server)
    assert len(found) == count
    until(lambda: sorted(shown(cloud, server)), lambda seen: seen == sorted(found), f"{found} to be shown")
    return found


def test_a_server_gets_an_address_and_loses_one(cloud: Cloud) -> None:
    server = cloud.boot()
    (first,) = addresses(cloud, server)
    assert add(cloud, server).status_code == 202
    assert first in both_soon(cloud, server, 2)
    assert remove(cloud, server, first).status_code == 202
    assert first not in both_soon(cloud, server, 1)


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_a_server_that_waits_for_its_confirm_gets_an_address_and_keeps_it(cloud: Cloud, flavor: str) -> None:
    server = cloud.boot()
    cloud.resized(server, flavor)
    assert add(cloud, server).status_code == 202
    both_soon(cloud, server, 2)
    cloud.confirmed(server)
    both_soon(cloud, server, 2)


def test_several_at_once_are_each_answered_for_what_was_done(cloud: Cloud) -> None:
    """Each gives the port a list of addresses that others change meanwhile."""
    server = cloud.boot()
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _number: add(cloud, server).status_code, range(4)))
    assert set(codes) <= {202, 409}
    both_soon(cloud, server, 1 + codes.count(202))


@pytest.fixture
def full_network(cloud: Cloud) -> Iterator[str]:
    network = cloud.member.network.create_network(name="full")
    cloud.member.network.create_subnet(network_id=network.id, ip_version=4, cidr="192.0.2.0/30", gateway_ip=None,
        allocation_pools=[{"start": "192.0.2.1", "end": "192.0.2.1"}])  # fmt: skip
    yield network.id
    cloud.clean()
    cloud.member.network.delete_network(network)


def test_what_can_t_be_had_is_refused_and_changes_nothing(cloud: Cloud, full_network: str) -> None:
    server = cloud.boot(networks=[{"uuid": full_network}])
    found = addresses(cloud, server)
    for answer, why in (
        (add(cloud, server, NOBODYS), "no port on network"),
        (add(cloud, server, cloud.network_id), "no port on network"),
        (add(cloud, server, full_network), "No fixed IP addresses available"),
        (remove(cloud, server, "10.99.99.99"), "does not have the fixed IP"),
        (remove(cloud, server, "nonsense"), "address"),
    ):
        assert answer.status_code == 400 and why in answer.text, answer.text
    assert addresses(cloud, server) == found
    assert act(cloud, server, "addFixedIp", "2.44", networkId=full_network).status_code == 404


def test_a_locked_server_keeps_its_addresses(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.member.compute.lock_server(server)
    (address,) = addresses(cloud, server)
    assert {add(cloud, server).status_code, remove(cloud, server, address).status_code} == {409}
    assert addresses(cloud, server) == [address]
