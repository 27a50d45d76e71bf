"""What is shown of a server's ports: its security groups and addresses are what the network service has, and soon, without
asking it for each look."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.clients.network_changes import PortChanges
from tests.functional.servers.moves_cloud import Cloud, until


@pytest.fixture
def group(cloud: Cloud) -> Iterator[Any]:
    made = cloud.member.network.create_security_group(name="shown")
    yield made
    cloud.clean()
    cloud.member.network.delete_security_group(made)


def groups(cloud: Cloud, server: Any) -> list[str]:
    """As the server shows them, alone and in the list."""
    shown = names(cloud.member.compute.get(f"/servers/{server.id}").json()["server"])
    listed = cloud.member.compute.get("/servers/detail").json()["servers"]
    assert [names(one) for one in listed if one["id"] == server.id] == [shown]
    return shown


def names(server: dict[str, Any]) -> list[str]:
    return sorted(each["name"] for each in server.get("security_groups", []))


def soon(cloud: Cloud, server: Any, expected: list[str]) -> None:
    path = f"/servers/{server.id}"
    until(
        lambda: names(cloud.member.compute.get(path).json()["server"]),
        lambda found: found == expected,
        f"{expected} to be shown",
    )
    assert groups(cloud, server) == expected


def test_one_that_was_asked_for_by_its_id_is_shown_by_its_name(cloud: Cloud, group: Any) -> None:
    server = cloud.boot(security_groups=[{"name": group.id}])
    assert groups(cloud, server) == ["shown"]


def test_a_port_that_was_there_keeps_its_own(cloud: Cloud, group: Any) -> None:
    port = cloud.member.network.create_port(network_id=cloud.network_id, security_groups=[group.id])
    server = cloud.boot(networks=[{"port": port.id}, {"uuid": cloud.network_id}])
    assert groups(cloud, server) == ["default", "shown"]
    cloud.clean()
    cloud.member.network.delete_port(port)


def test_without_ports_there_are_none(cloud: Cloud) -> None:
    server = cloud.boot(networks="none")
    assert groups(cloud, server) == []


def test_ports_that_are_plugged_and_unplugged_bring_theirs_and_take_them_along(cloud: Cloud, group: Any) -> None:
    server = cloud.boot()
    port = cloud.member.network.create_port(network_id=cloud.network_id, security_groups=[group.id])
    cloud.member.compute.create_server_interface(server.id, port_id=port.id)
    assert groups(cloud, server) == ["default", "shown"]
    cloud.member.compute.delete_server_interface(port.id, server=server.id)
    soon(cloud, server, ["default"])
    cloud.member.network.delete_port(port)


def test_added_and_removed_groups_are_shown_at_once(cloud: Cloud, group: Any) -> None:
    server = cloud.boot()
    cloud.member.compute.add_security_group_to_server(server, group)
    assert groups(cloud, server) == ["default", "shown"]
    cloud.member.compute.remove_security_group_from_server(server, group)
    assert groups(cloud, server) == ["default"]


@pytest.fixture
def several(cloud: Cloud) -> Iterator[list[Any]]:
    made = [cloud.member.network.create_security_group(name=f"at-once-{number}") for number in range(4)]
    yield made
    cloud.clean()
    for group in made:
        cloud.member.network.delete_security_group(group)


def at_once(cloud: Cloud, server: Any, wanted: list[dict[str, Any]]) -> list[int]:
    """The statuses of the answers to these actions."""

    def act(body: dict[str, Any]) -> int:
        answer: int = cloud.member.compute.post(f"/servers/{server.id}/action", json=body).status_code
        return answer

    with ThreadPoolExecutor(len(wanted)) as pool:
        return list(pool.map(act, wanted))


def test_of_groups_that_are_added_at_once_none_is_lost(cloud: Cloud, several: list[Any]) -> None:
    server = cloud.boot()
    codes = at_once(cloud, server, [{"addSecurityGroup": {"name": group.name}} for group in several])
    assert set(codes) <= {202, 409}
    (port,) = cloud.ports(server)
    has = set(cloud.admin.network.get_port(port).security_group_ids)
    assert {group.id for group, code in zip(several, codes, strict=True) if code == 202} <= has


@pytest.mark.embedded("replaces code")
def test_a_port_that_is_deleted_meanwhile_hinders_no_change(
    cloud: Cloud, group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()
    (first,) = cloud.ports(server)
    second = cloud.member.compute.create_server_interface(server.id, net_id=cloud.network_id)
    change = PortChanges.change_port

    def deleted_before(client: Any, context: Any, port: Any, wanted: Any) -> Any:
        if port["id"] == second.port_id:
            cloud.admin.network.delete_port(second.port_id)
        return change(client, context, port, wanted)

    monkeypatch.setattr(PortChanges, "change_port", deleted_before)
    cloud.member.compute.add_security_group_to_server(server, group)
    assert group.id in cloud.admin.network.get_port(first).security_group_ids
    until(lambda: list(cloud.ports(server)), lambda found: found == [first], "the port to be gone")
    cloud.member.compute.remove_security_group_from_server(server, group)
    assert group.id not in cloud.admin.network.get_port(first).security_group_ids


@pytest.mark.embedded("replaces code")
def test_no_group_is_lost_if_the_network_service_keeps_only_the_last_change(
    cloud: Cloud, several: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neutron does so if several change a port that all have read before."""
    *added, removed = several
    server = cloud.boot()
    cloud.member.compute.add_security_group_to_server(server, removed)
    change, all_have_read, waited = PortChanges._change, threading.Barrier(len(several)), set()

    def at_the_same_time(self: PortChanges, context: Any, port: Any, changes: Any, **more: Any) -> Any:
        if "security_groups" in changes and threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            all_have_read.wait(30)
        return change(self, context, port, changes, **more)

    monkeypatch.setattr(PortChanges, "_change", at_the_same_time)
    monkeypatch.setattr(PortChanges, "has_extension", lambda _self, _alias: False)
    wanted = [{"addSecurityGroup": {"name": group.name}} for group in added]
    assert at_once(cloud, server, [*wanted, {"removeSecurityGroup": {"name": removed.name}}]) == [202] * 4
    (port,) = cloud.ports(server)
    shown = sorted(["default", *(group.name for group in added)])
    assert groups(cloud, server) == shown
    has = cloud.admin.network.get_port(port).security_group_ids
    assert sorted(cloud.admin.network.get_security_group(each).name for each in has) == shown


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_changed_in_the_network_service_it_is_notified_and_shows_it(cloud: Cloud, group: Any, flavor: str) -> None:
    """Also of a server that waits for its confirm in another cell, and after it."""
    server = cloud.boot()
    (port,) = cloud.ports(server)
    cloud.member.network.update_port(port, security_groups=[group.id])
    soon(cloud, server, ["shown"])
    cloud.resized(server, flavor)
    assert groups(cloud, server) == ["shown"]
    cloud.member.network.update_port(port, security_groups=[])
    soon(cloud, server, [])
    cloud.confirmed(server)
    assert groups(cloud, server) == []


def test_a_new_address_is_shown(cloud: Cloud) -> None:
    server = cloud.boot()
    (port,) = cloud.ports(server)
    found = cloud.admin.network.get_port(port)
    (address,) = found.fixed_ips
    cloud.admin.network.update_port(port, fixed_ips=[address, {"subnet_id": address["subnet_id"]}])
    until(
        lambda: [each["addr"] for of_net in cloud.show(server).addresses.values() for each in of_net],
        lambda shown: len(shown) == 2 and address["ip_address"] in shown,
        "the second address to be shown",
    )


def test_looking_asks_the_network_service_nothing(cloud: Cloud) -> None:
    """The service may be unreachable: what was last seen is shown."""
    cloud.needs_devcloud("has the network service fail")
    server = cloud.boot()
    cloud.fail("status", "", service="network", status=503)
    assert groups(cloud, server) == ["default"]
