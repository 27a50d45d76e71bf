"""What users set up around a server's ports comes along: tags, security groups, address pairs, names, floating IPs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until

ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
KEPT = (
    "id",
    "name",
    "description",
    "mac_address",
    "fixed_ips",
    "security_group_ids",
    "allowed_address_pairs",
    "dns_name",
    "extra_dhcp_opts",
    "device_id",
    "device_owner",
    "is_port_security_enabled",
    "tags",
    "status",
)


@pytest.fixture(scope="module")
def external(module_cloud: Cloud) -> Any:
    """An external network, and a router to it."""
    network = module_cloud.admin.network
    outside = network.create_network(name="outside", is_router_external=True)
    network.create_subnet(network_id=outside.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False)
    router = next(iter(network.routers()), None)
    if router is None:
        router = network.create_router(name="router", external_gateway_info={"network_id": outside.id})
        inside = next(iter(network.subnets(network_id=module_cloud.network_id)))
        network.add_interface_to_router(router, subnet_id=inside.id)
    return outside


def finish(cloud: Cloud, server: Any, end: str) -> Any:
    return cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)


def as_users_see_them(cloud: Cloud, server: Any) -> dict[str, Any]:
    ports = sorted(cloud.admin.network.ports(device_id=server.id), key=lambda port: port.id)
    shown = cloud.show(server)
    return {
        "ports": [{name: port[name] for name in KEPT} for port in ports],
        "interfaces": [(each.port_id, each.tag) for each in cloud.interfaces(server)],
        "addresses": shown.addresses,
        "groups": sorted(group["name"] for group in shown.security_groups),
        "floating": [(ip.floating_ip_address, ip.port_id, ip.status) for ip in cloud.admin.network.ips()],
    }


@ENDS
@WAYS
@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
def test_everything_about_several_ports_survives(
    cloud: Cloud, external: Any, end: str, flavor: str, power: str
) -> None:
    cloud.needs_network_extension("dns-integration")
    network = cloud.member.network
    group = network.create_security_group(name="web")
    network.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=80, port_range_max=80
    )
    mine = network.create_port(
        network_id=cloud.network_id,
        name="mine",
        description="the one with the name",
        dns_name="shop",
        security_groups=[group.id],
        allowed_address_pairs=[{"ip_address": "10.0.0.250", "mac_address": "fa:16:3e:00:00:fa"}],
    )
    network.set_tags(mine, ["front", "paid"])
    server = cloud.boot(networks=[{"port": mine.id, "tag": "front"}, {"uuid": cloud.network_id, "tag": "back"}])
    floating = network.create_ip(floating_network_id=external.id, port_id=mine.id)
    until(
        lambda: cloud.show(server).addresses,
        lambda found: floating.floating_ip_address in {each["addr"] for of_net in found.values() for each in of_net},
        "the floating IP to be shown",
    )
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    try:
        before = as_users_see_them(cloud, server)
        assert [tag for _port, tag in before["interfaces"]] == ["front", "back"]
        moved = cloud.resized(server, flavor)
        assert as_users_see_them(cloud, server) == before
        assert {host for _status, host, _all in cloud.ports(server).values()} == {moved.compute_host}
        after = finish(cloud, server, end)
        assert after.status == power
        assert as_users_see_them(cloud, server) == before
        # Bindings elsewhere are gone, and those here are in force.
        assert [found[2] for found in cloud.ports(server).values()] == [{after.compute_host: "ACTIVE"}] * 2

        cloud.clean()
        # Bug 2058725: a port that outlives its server keeps its name.
        left = cloud.admin.network.get_port(mine.id)
        assert (left.device_id, left.dns_name, left.tags) == ("", "shop", ["front", "paid"])
    finally:
        cloud.clean()
        network.delete_ip(floating)
        network.delete_port(mine)
        network.delete_security_group(group)


@ENDS
@WAYS
def test_a_floating_ip_given_while_verifying_stays(cloud: Cloud, external: Any, end: str, flavor: str) -> None:
    server = cloud.boot()
    (port,) = cloud.ports(server)
    cloud.resized(server, flavor)
    floating = cloud.member.network.create_ip(floating_network_id=external.id, port_id=port)
    try:
        finish(cloud, server, end)
        assert cloud.admin.network.get_ip(floating.id).port_id == port
    finally:
        cloud.member.network.delete_ip(floating)


@ENDS
@WAYS
def test_security_groups_changed_while_verifying_stay(cloud: Cloud, end: str, flavor: str) -> None:
    group = cloud.member.network.create_security_group(name="late")
    server = cloud.boot()
    (port,) = cloud.ports(server)
    cloud.resized(server, flavor)
    cloud.member.network.update_port(port, security_groups=[group.id])
    finish(cloud, server, end)
    assert cloud.admin.network.get_port(port).security_group_ids == [group.id]
    cloud.clean()
    cloud.member.network.delete_security_group(group)


@ENDS
@WAYS
def test_a_port_deleted_while_verifying_is_no_obstacle(cloud: Cloud, end: str, flavor: str) -> None:
    gone, kept = (cloud.member.network.create_port(network_id=cloud.network_id) for _ in range(2))
    server = cloud.boot(networks=[{"port": gone.id}, {"port": kept.id}])
    cloud.resized(server, flavor)
    cloud.admin.network.delete_port(gone.id)
    after = finish(cloud, server, end)
    assert after.status == "ACTIVE"
    assert cloud.ports(server) == {kept.id: ("ACTIVE", after.compute_host, {after.compute_host: "ACTIVE"})}
    cloud.clean()
    cloud.member.network.delete_port(kept)


@WAYS
def test_a_server_without_ports_moves(cloud: Cloud, flavor: str) -> None:
    server = cloud.boot(networks="none")
    cloud.resized(server, flavor)
    cloud.reverted(server)
    cloud.resized(server, flavor)
    assert cloud.confirmed(server).addresses == {}
