"""Ports with guaranteed bandwidth and packet rate: placed with their server, moved with it in a cell and across cells."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.clients.placement import Inventory
from tests.functional.servers.moves_cloud import Cloud, until

ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
FORMS = pytest.mark.parametrize("groups", [True, False], ids=["groups", "older form"])
KINDS = pytest.mark.parametrize(
    ("boot", "groups"),
    [("boot", True), ("boot", False), ("boot_from_volume", True)],
    ids=["image", "image, older form", "volume"],
)
EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
PROMISED = {EGRESS: 1000, INGRESS: 500}
BANDWIDTH_OF_HOST = 3000


def agent(host: str) -> str:
    return f"{host}:Open vSwitch agent"


def bridge(host: str) -> str:
    return f"{agent(host)}:br-tun"


@pytest.fixture(scope="module", autouse=True)
def agents(module_cloud: Cloud) -> dict[str, str]:
    """What network agents make below each compute node: themselves, with a packet rate, and a bridge, with bandwidth."""
    module_cloud.needs_devcloud("network agents' providers are made here")
    placement = module_cloud.parts.around.placement
    uuids = {}
    for root in placement.list_providers():
        for name, parent, inventory, traits in (
            (agent(root.name), root.uuid, {PACKETS: 100}, set()),
            (
                bridge(root.name),
                None,
                {EGRESS: BANDWIDTH_OF_HOST, INGRESS: BANDWIDTH_OF_HOST},
                {"CUSTOM_NETWORK_TUNNEL_PROVIDER"},
            ),
        ):
            uuids[name] = str(uuid.uuid4())
            placement.ensure_provider(uuids[name], name, parent_uuid=parent or uuids[agent(root.name)])
            placement.set_inventory(uuids[name], {kind: Inventory(total) for kind, total in inventory.items()})
            placement.set_traits(uuids[name], {"CUSTOM_VNIC_TYPE_NORMAL", *traits})
    return uuids


@pytest.fixture
def policy(cloud: Cloud) -> Iterator[Any]:
    """A QoS policy of 1 Mbit/s out and 0.5 Mbit/s in."""
    network = cloud.admin.network
    policy = network.create_qos_policy(name="guaranteed", shared=True)
    network.create_qos_minimum_bandwidth_rule(policy, direction="egress", min_kbps=1000)
    network.create_qos_minimum_bandwidth_rule(policy, direction="ingress", min_kbps=500)
    yield policy
    cloud.clean()
    for port in network.ports():
        if port.qos_policy_id == policy.id:
            network.delete_port(port)
    cloud.parts.devcloud.port_resource_request_groups = True
    network.delete_qos_policy(policy)


@pytest.fixture
def packets(cloud: Cloud, policy: Any) -> Any:
    """The same policy with 10 kilopackets per second."""
    cloud.admin.network.create_qos_minimum_packet_rate_rule(policy, direction="any", min_kpps=10)
    return policy


def make_port(cloud: Cloud, policy: Any | None) -> Any:
    given = {} if policy is None else {"qos_policy_id": policy.id}
    return cloud.member.network.create_port(network_id=cloud.network_id, **given)


def profile(cloud: Cloud, port: Any, host: str) -> Any:
    """The providers that the network service got for a host: the "allocation" of that binding."""
    answer = cloud.admin.network.get(f"/ports/{port.id}/bindings/{host}").json()
    return answer["binding"]["profile"].get("allocation")


def providers_bound(cloud: Cloud, port: Any, host: str) -> set[str]:
    reported = profile(cloud, port, host)
    names = {one.uuid: one.name for one in cloud.parts.around.placement.list_providers()}
    return {names[reported]} if isinstance(reported, str) else {names[each] for each in reported.values()}


def check_holds(cloud: Cloud, consumer: str, host: str, of_ports: dict[str, dict[str, int]]) -> None:
    """A consumer holds something of one host's root provider, and exactly this of others."""
    held = cloud.allocations(consumer)
    assert "VCPU" in held.pop(host)
    assert held == of_ports


def test_a_port_shows_what_it_asks_for_to_administrators_only(cloud: Cloud, packets: Any) -> None:
    port = make_port(cloud, packets)
    shown = cloud.admin.network.get(f"/ports/{port.id}").json()["port"]
    bandwidth, rate = shown["resource_request"]["request_groups"]
    assert (bandwidth["resources"], rate["resources"]) == (PROMISED, {PACKETS: 10})
    assert shown["resource_request"]["same_subtree"] == [bandwidth["id"], rate["id"]]
    assert "resource_request" not in cloud.member.network.get(f"/ports/{port.id}").json()["port"]


@FORMS
def test_a_server_is_placed_where_its_port_gets_what_it_asks_for(cloud: Cloud, policy: Any, groups: bool) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    port, plain = make_port(cloud, policy), make_port(cloud, None)
    server = cloud.boot(networks=[{"port": port.id}, {"port": plain.id}])
    host = cloud.show(server).compute_host
    check_holds(cloud, server.id, host, {bridge(host): PROMISED})
    assert isinstance(profile(cloud, port, host), dict if groups else str)
    assert providers_bound(cloud, port, host) == {bridge(host)}
    assert profile(cloud, plain, host) is None

    cloud.clean()
    assert cloud.allocations(server.id) == {}
    left = cloud.admin.network.get_port(port.id)
    assert (left.binding_host_id, left.binding_profile) == ("", {})


def test_where_there_is_not_enough_no_server_is_placed(cloud: Cloud, policy: Any) -> None:
    for _host in range(2):
        for _server in range(3):
            cloud.boot(networks=[{"port": make_port(cloud, policy).id}])
    server = cloud.member.compute.create_server(
        name="one too many",
        flavor_id="gen1.small",
        image_id=cloud.image_id,
        networks=[{"port": make_port(cloud, policy).id}],
    )
    found = until(lambda: cloud.show(server), lambda found: found.fault, "no host to be found")
    assert found.status == "ERROR" and EGRESS in found.fault["message"]
    assert cloud.allocations(server.id) == {}


@ENDS
@WAYS
@KINDS
def test_a_move_claims_at_the_target_and_notifies_the_network_service(
    cloud: Cloud, policy: Any, end: str, flavor: str, groups: bool, boot: str
) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    port = make_port(cloud, policy)
    networks = [{"port": port.id}]
    server = cloud.boot(networks=networks) if boot == "boot" else cloud.boot_from_volume(networks=networks)
    source, reported = cloud.show(server).compute_host, None
    reported = profile(cloud, port, source)
    target = cloud.resized(server, flavor).compute_host
    assert (target[:5] == source[:5]) == (flavor == "any.medium")
    migration = cloud.migration(server)
    check_holds(cloud, server.id, target, {bridge(target): PROMISED})
    check_holds(cloud, migration.uuid, source, {bridge(source): PROMISED})
    assert providers_bound(cloud, port, target) == {bridge(target)}
    assert profile(cloud, port, source) == reported

    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    stays = target if end == "confirm" else source
    check_holds(cloud, server.id, stays, {bridge(stays): PROMISED})
    assert cloud.allocations(migration.uuid) == {}
    assert list(cloud.ports(server).values()) == [("ACTIVE", stays, {stays: "ACTIVE"})]
    assert providers_bound(cloud, port, stays) == {bridge(stays)}
    (vif,) = cloud.record(server, stays[:5]).network_info
    assert vif.profile["allocation"] == profile(cloud, port, stays)


@WAYS
def test_several_ports_have_bandwidth_and_packet_rate(cloud: Cloud, packets: Any, flavor: str) -> None:
    ports = [make_port(cloud, packets), make_port(cloud, None), make_port(cloud, packets)]
    server = cloud.boot(networks=[{"port": port.id} for port in ports])
    both = {EGRESS: 2000, INGRESS: 1000}
    source = cloud.show(server).compute_host
    check_holds(cloud, server.id, source, {bridge(source): both, agent(source): {PACKETS: 20}})
    target = cloud.resized(server, flavor).compute_host
    check_holds(cloud, server.id, target, {bridge(target): both, agent(target): {PACKETS: 20}})
    assert providers_bound(cloud, ports[0], target) == {bridge(target), agent(target)}
    cloud.reverted(server)
    check_holds(cloud, server.id, source, {bridge(source): both, agent(source): {PACKETS: 20}})
    assert providers_bound(cloud, ports[2], source) == {bridge(source), agent(source)}


def test_a_move_goes_where_the_bandwidth_is(cloud: Cloud, policy: Any, agents: dict[str, str]) -> None:
    server = cloud.boot(networks=[{"port": make_port(cloud, policy).id}])
    placement = cloud.parts.around.placement
    empty, full = dict[str, Inventory](), {kind: Inventory(BANDWIDTH_OF_HOST) for kind in (EGRESS, INGRESS)}
    placement.set_inventory(agents[bridge("cell2-host1")], empty)
    try:
        assert cloud.resized(server).compute_host == "cell2-host2"
        cloud.reverted(server)
        placement.set_inventory(agents[bridge("cell2-host2")], empty)
        before = cloud.reality(server)
        cloud.member.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
        assert cloud.reality(server) == before
        assert "NET_BW" in cloud.faults(server)[-1].message
    finally:
        for host in ("cell2-host1", "cell2-host2"):
            placement.set_inventory(agents[bridge(host)], full)


@WAYS
def test_a_failed_move_restores_allocations_and_mapping(cloud: Cloud, policy: Any, flavor: str) -> None:
    port = make_port(cloud, policy)
    server = cloud.boot(networks=[{"port": port.id}])
    host = cloud.show(server).compute_host
    before, reported = cloud.reality(server), profile(cloud, port, host)
    cloud.parts.devcloud.unpluggable_hosts = set(cloud.parts.computes) - {host}
    cloud.option("vif_plugging_timeout", 1)
    cloud.member.compute.resize_server(server.id, flavor)
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert profile(cloud, port, host) == reported


def test_an_alternate_host_has_providers_of_its_own(cloud: Cloud, policy: Any) -> None:
    port = make_port(cloud, policy)
    server = cloud.boot(networks=[{"port": port.id}])
    cloud.lose("prep_snapshot_based_resize_at_dest")
    target = cloud.resized(server).compute_host
    assert providers_bound(cloud, port, target) == {bridge(target)}
    check_holds(cloud, server.id, target, {bridge(target): PROMISED})


@FORMS
def test_an_attached_port_is_held_until_it_is_detached(cloud: Cloud, policy: Any, groups: bool) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    first, second = make_port(cloud, policy), make_port(cloud, policy)
    server = cloud.boot(networks=[{"port": first.id}])
    host = cloud.show(server).compute_host
    cloud.member.compute.create_server_interface(server.id, port_id=second.id)
    check_holds(cloud, server.id, host, {bridge(host): {EGRESS: 2000, INGRESS: 1000}})
    assert providers_bound(cloud, second, host) == {bridge(host)}
    cloud.member.compute.delete_server_interface(second.id, server=server.id)
    until(lambda: len(cloud.ports(server)), lambda left: left == 1, "the port to be detached")
    until(
        lambda: cloud.allocations(server.id)[bridge(host)],
        lambda held: held == PROMISED,
        "its bandwidth to be free again",
    )
    assert cloud.admin.network.get_port(second.id).binding_profile == {}


def test_a_port_that_asks_for_more_than_there_is_is_not_attached(cloud: Cloud, policy: Any) -> None:
    ports = [make_port(cloud, policy) for _ in range(4)]
    server = cloud.boot(networks=[{"port": port.id} for port in ports[:3]])
    before = cloud.reality(server)
    refused = cloud.member.compute.post(
        f"/servers/{server.id}/os-interface", json={"interfaceAttachment": {"port_id": ports[3].id}}
    )
    assert refused.status_code == 400
    assert "Failed to allocate additional resources" in refused.json()["badRequest"]["message"]
    assert cloud.reality(server) == before
    assert cloud.admin.network.get_port(ports[3].id).device_id == ""


def test_old_versions_refuse_such_ports(cloud: Cloud, policy: Any) -> None:
    port = make_port(cloud, policy)
    body = {"name": "x", "flavorRef": "gen1.small", "imageRef": cloud.image_id, "networks": [{"port": port.id}]}
    refused = cloud.member.compute.post("/servers", json={"server": body}, microversion="2.71")
    assert refused.status_code == 400
    assert "microversion 2.72" in refused.json()["badRequest"]["message"]


def test_a_network_whose_ports_ask_for_resources_can_not_be_asked_for(cloud: Cloud, policy: Any) -> None:
    network = cloud.admin.network.create_network(name="guaranteed", shared=True, qos_policy_id=policy.id)
    subnet = cloud.admin.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.77.0.0/24")
    server = cloud.boot()
    try:
        refused = cloud.member.compute.post(
            f"/servers/{server.id}/os-interface", json={"interfaceAttachment": {"net_id": network.id}}
        )
        assert refused.status_code == 400
        assert "Using networks with QoS policy is not supported" in refused.json()["badRequest"]["message"]
        assert len(cloud.ports(server)) == 1
    finally:
        cloud.admin.network.delete_subnet(subnet)
        cloud.admin.network.delete_network(network)


def test_the_audit_has_nothing_to_say_of_such_servers(cloud: Cloud, packets: Any) -> None:
    server = cloud.boot(networks=[{"port": make_port(cloud, packets).id}])
    cloud.resized(server)
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).is_clean
    cloud.confirmed(server)
    assert audit_embedded(cloud.parts, pause=0.01).is_clean
