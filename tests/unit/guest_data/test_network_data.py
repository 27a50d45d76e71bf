"""What guests learn of their links and networks."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.clients.network_info import Around, vif_of
from causeway.guest_data.network_data import network_data
from causeway.model.network import FixedIp, Vif

PORT, LINK = "aaaaaaaa-0000-4000-8000-000000000000", "tapaaaaaaaa-00"


def vif(*ips: FixedIp, **fields: Any) -> Vif:
    return Vif(**{"id": PORT, "address": "fa:16:3e:00:00:01", "network_id": "net", "fixed_ips": list(ips)} | fields)


def v4(**fields: Any) -> FixedIp:
    return FixedIp(**{"address": "10.0.0.5", "subnet_id": "sub", "cidr": "10.0.0.0/24", "gateway": "10.0.0.1"} | fields)


def v6(**fields: Any) -> FixedIp:
    given: dict[str, Any] = {"address": "fd00::5", "subnet_id": "sub6", "version": 6, "cidr": "fd00::/64"}
    return FixedIp(**given | {"gateway": "fd00::1"} | fields)


def test_a_network_with_a_dhcp_server_has_no_addresses() -> None:
    reported = network_data([vif(v4(dhcp=True, dns=["192.0.2.53"]), vif_type="ovs")])
    assert reported == {
        "links": [
            {"id": LINK, "vif_id": PORT, "type": "ovs", "mtu": None, "ethernet_mac_address": "fa:16:3e:00:00:01"}
        ],
        "networks": [{"id": "network0", "type": "ipv4_dhcp", "link": LINK, "network_id": "net"}],
        "services": [{"type": "dns", "address": "192.0.2.53"}],
    }


def test_a_network_without_a_dhcp_server_has_addresses_and_routes() -> None:
    routes = [{"destination": "192.168.0.0/16", "nexthop": "10.0.0.2"}]
    address = v4(dhcp=False, dns=["192.0.2.53"], routes=routes)
    reported = network_data([vif(address, mtu=1450), vif(v4(address="10.0.0.6", dhcp=False, dns=["192.0.2.53"]))])
    assert (reported["links"][0]["type"], reported["links"][0]["mtu"]) == ("phy", 1450)
    assert reported["networks"][0] == {
        "id": "network0",
        "type": "ipv4",
        "link": LINK,
        "network_id": "net",
        "ip_address": "10.0.0.5",
        "netmask": "255.255.255.0",
        "routes": [
            {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"},
            {"network": "192.168.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.2"},
        ],
        "services": [{"type": "dns", "address": "192.0.2.53"}],
    }
    assert reported["networks"][1]["id"] == "network1"
    assert reported["services"] == [{"type": "dns", "address": "192.0.2.53"}]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (v6(dhcp=False), "ipv6"),
        (v6(dhcp=True), "ipv6_dhcp"),
        (v6(dhcp=True, ipv6_address_mode="slaac"), "ipv6_slaac"),
        (v6(dhcp=True, ipv6_address_mode="dhcpv6-stateful"), "ipv6_dhcpv6-stateful"),
        # Seen by a release that did not look: as that one wrote it.
        (v6(), "ipv6_dhcp"),
    ],
)
def test_ipv6_networks_have_the_type_of_their_mode(address: FixedIp, kind: str) -> None:
    (network,) = network_data([vif(address)])["networks"]
    assert network["type"] == kind
    if kind not in ("ipv6_dhcp",):
        assert network["netmask"] == "ffff:ffff:ffff:ffff::"
        assert network["routes"] == [{"network": "::", "netmask": "::", "gateway": "fd00::1"}]


def test_a_link_has_one_network_of_each_version() -> None:
    reported = network_data([vif(v6(dhcp=False), v4(dhcp=False), v4(address="10.0.0.6", dhcp=False))])
    assert [(each["type"], each["ip_address"]) for each in reported["networks"]] == [
        ("ipv4", "10.0.0.5"),
        ("ipv6", "fd00::5"),
    ]


def test_nothing_is_known_of_the_subnet() -> None:
    (network,) = network_data([vif(FixedIp("10.0.0.5", "sub", dhcp=False))])["networks"]
    assert (network["netmask"], network["routes"]) == (None, [])


def test_the_network_service_says_it() -> None:
    subnet = {
        "ip_version": 6,
        "cidr": "fd00::/64",
        "enable_dhcp": True,
        "ipv6_address_mode": "slaac",
        "host_routes": [{"destination": "fd01::/64", "nexthop": "fd00::2", "more": "than that"}],
    }
    port = {
        "id": PORT,
        "mac_address": "fa:16:3e:00:00:01",
        "network_id": "net",
        "fixed_ips": [{"ip_address": "fd00::5", "subnet_id": "sub6"}],
    }
    (seen,) = vif_of(port, Around({}, {"sub6": subnet}, {}), {}).fixed_ips
    assert (seen.dhcp, seen.ipv6_address_mode) == (True, "slaac")
    assert seen.routes == [{"destination": "fd01::/64", "nexthop": "fd00::2"}]
