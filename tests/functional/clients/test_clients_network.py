"""The network client: what a request may ask for, ports, bindings, and what a server's network info costs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.clients.network import NetworkClient
from causeway.clients.session import calls
from causeway.context import RequestContext
from causeway.devcloud import Fault
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork, Vif

NewNetwork = Callable[..., tuple[str, str]]


@pytest.fixture
def net(new_network: NewNetwork, demo: RequestContext) -> str:
    return new_network(demo)[0]


@pytest.fixture
def port(network: NetworkClient, demo: RequestContext, net: str, server_uuid: str) -> Vif:
    """A port of a server, bound to host1."""
    return network.create_port(demo, demo.project_id or "", server_uuid, net, host="host1", tag="first")


def server(uuid: str, demo: RequestContext, ports: list[Vif] | None = None) -> Instance:
    """A server of the user's project. ``ports``: as its record has them."""
    project, user = demo.project_id or "", demo.user_id or ""
    return Instance(uuid, project, user, "server", flavor=Flavor("f", "f", 1, 1, 1), network_info=ports or [])


# Ports


def test_a_new_port_has_all_that_a_guest_needs(
    network: NetworkClient, demo: RequestContext, net: str, port: Vif, server_uuid: str
) -> None:
    (ip,) = port.fixed_ips
    assert (ip.version, ip.cidr, ip.gateway, ip.dns) == (4, "10.1.0.0/24", "10.1.0.1", ["192.0.2.53"])
    assert (port.network_id, port.network_label, port.mtu, port.tag) == (net, "net", 1450, "first")
    assert port.details["segmentation_id"] > 0
    shown = network.show_port(demo, port.id)
    assert (shown["device_id"], shown["project_id"], shown["binding:host_id"]) == (
        server_uuid,
        demo.project_id,
        "host1",
    )
    assert "resource_request" in shown


def test_a_wanted_address_is_given_or_refused(
    network: NetworkClient, demo: RequestContext, net: str, server_uuid: str
) -> None:
    project = demo.project_id or ""
    vif = network.create_port(demo, project, server_uuid, net, fixed_ip="10.1.0.77")
    assert vif.fixed_ips[0].address == "10.1.0.77"
    with pytest.raises(errors.Conflict, match="already in use"):
        network.create_port(demo, project, server_uuid, net, fixed_ip="10.1.0.77")
    with pytest.raises((errors.BadRequest, errors.ServiceRefused)):
        network.create_port(demo, project, server_uuid, net, fixed_ip="192.0.2.1")
    with pytest.raises(errors.NetworkNotFound):
        network.create_port(demo, project, server_uuid, str(uuid.uuid4()))


def test_network_info_of_a_known_server_is_one_call(
    network: NetworkClient, demo: RequestContext, net: str, server_uuid: str
) -> None:
    made = [network.create_port(demo, demo.project_id or "", server_uuid, net, tag=tag) for tag in ("a", "b", "c")]
    made[1].preserve_on_delete = True
    made[2].fixed_ips[0].floating_ips = ["203.0.113.9"]
    previous = [made[2], made[0], made[1]]
    network.network_info(demo, server(server_uuid, demo, previous))
    calls.reset()
    info = network.network_info(demo, server(server_uuid, demo, previous))
    assert calls.snapshot() == {"network GET /v2.0/ports": 1}
    assert [vif.tag for vif in info] == ["c", "a", "b"]
    assert [vif.preserve_on_delete for vif in info] == [False, False, True]
    assert info[0].fixed_ips[0].floating_ips == ["203.0.113.9"]


def test_a_port_that_nobody_wrote_down_is_deleted_with_the_server_only_if_it_was_made_for_it(
    network: NetworkClient, demo: RequestContext, net: str, server_uuid: str, around: Any
) -> None:
    """Else it may be its user's own, who can give it to the server too."""
    written, unknown = (network.create_port(demo, demo.project_id or "", server_uuid, net).id for _ in range(2))
    (known,) = (vif for vif in network.network_info(demo, server(server_uuid, demo)) if vif.id == written)
    for_another = network.create_port(demo, demo.project_id or "", str(uuid.uuid4()), net).id
    own = around.ask(demo, "POST", "/network/v2.0/ports", {"port": {"network_id": net}})["port"]["id"]
    for port in (for_another, own):
        network.update_port(demo, port, {"device_id": server_uuid})
    info = network.network_info(demo, server(server_uuid, demo, [known]))
    assert {vif.id: vif.preserve_on_delete for vif in info} == {
        written: False,
        unknown: False,
        for_another: True,
        own: True,
    }


def test_network_info_of_a_server_without_ports_is_empty(network: NetworkClient, demo: RequestContext) -> None:
    assert network.network_info(demo, server(str(uuid.uuid4()), demo)) == []


def test_a_port_that_outlives_its_server_keeps_what_its_owner_set(
    network: NetworkClient, demo: RequestContext, net: str, server_uuid: str, around: Any
) -> None:
    body = {"port": {"network_id": net, "name": "mine", "dns_name": "www"}}
    port = around.ask(demo, "POST", "/network/v2.0/ports", body)["port"]
    network.bind_port(demo, port["id"], "host1", server_uuid, "compute:nova")
    assert network.show_port(demo, port["id"])["device_owner"] == "compute:nova"
    network.unbind_port(demo, port["id"])
    left = network.show_port(demo, port["id"])
    assert (left["device_id"], left["device_owner"], left["binding:host_id"]) == ("", "", "")
    assert (left["name"], left["dns_name"], left["fixed_ips"]) == ("mine", "www", port["fixed_ips"])


def test_deleting_and_unbinding_what_is_not_there_is_fine(
    network: NetworkClient, demo: RequestContext, port: Vif
) -> None:
    network.delete_port(demo, port.id)
    network.delete_port(demo, port.id)
    network.unbind_port(demo, port.id)
    network.delete_binding(demo, port.id, "host1")
    with pytest.raises(errors.PortNotFound, match=port.id):
        network.show_port(demo, port.id)


# Bindings


def test_a_port_moves_by_its_bindings(network: NetworkClient, demo: RequestContext, port: Vif) -> None:
    assert network.has_extension("binding-extended")
    assert network.create_binding(demo, port.id, "host2", port.vnic_type).status == "INACTIVE"
    assert network.activate_binding(demo, port.id, "host2").status == "ACTIVE"
    assert {each.host: each.status for each in network.list_bindings(demo, port.id)} == {
        "host1": "INACTIVE",
        "host2": "ACTIVE",
    }
    network.delete_binding(demo, port.id, "host1")
    assert [each.host for each in network.list_bindings(demo, port.id)] == ["host2"]


def test_what_is_done_to_bindings_may_be_repeated(network: NetworkClient, demo: RequestContext, port: Vif) -> None:
    first = network.create_binding(demo, port.id, "host2")
    assert network.create_binding(demo, port.id, "host2") == first
    active = network.activate_binding(demo, port.id, "host2")
    assert network.activate_binding(demo, port.id, "host2") == active
    network.delete_binding(demo, port.id, "host1")
    network.delete_binding(demo, port.id, "host1")


@pytest.mark.parametrize("path", ["/bindings$", "/activate$"])
def test_a_lost_answer_is_asked_for_again(
    network: NetworkClient, demo: RequestContext, port: Vif, around: Any, path: str
) -> None:
    around.cloud.faults.add(Fault("lose_reply", path=path, service="network", times=1))
    network.create_binding(demo, port.id, "host2")
    assert network.activate_binding(demo, port.id, "host2").status == "ACTIVE"


def test_a_binding_to_a_host_that_is_not_known_fails(network: NetworkClient, demo: RequestContext, port: Vif) -> None:
    with pytest.raises(errors.ServiceFailed):
        network.create_binding(demo, port.id, "nowhere")
    with pytest.raises(errors.NotFound):
        network.activate_binding(demo, port.id, "host2")


# What a create request asks for


def validated(
    network: NetworkClient, context: RequestContext, *requested: RequestedNetwork, count: int = 1
) -> list[str]:
    project = context.project_id or ""
    return [each.network_id or "" for each in network.validate_networks(context, list(requested), count, project)]


def test_networks_that_are_there_and_usable_pass(network: NetworkClient, demo: RequestContext, net: str) -> None:
    assert validated(network, demo, RequestedNetwork(network_id=net)) == [net]


def test_networks_of_others_are_not_there(
    network: NetworkClient, other: RequestContext, nobody: RequestContext, net: str
) -> None:
    with pytest.raises(errors.BadRequest, match=f"Network {net} could not be found"):
        validated(network, other, RequestedNetwork(network_id=net))
    nobody.project_id = other.project_id
    with pytest.raises(errors.BadRequest, match="could not be found"):
        validated(network, nobody, RequestedNetwork(network_id=net))


def test_a_network_needs_a_subnet(network: NetworkClient, demo: RequestContext, around: Any) -> None:
    bare = around.ask(demo, "POST", "/network/v2.0/networks", {"network": {"name": "bare"}})["network"]["id"]
    with pytest.raises(errors.BadRequest, match="requires a subnet"):
        validated(network, demo, RequestedNetwork(network_id=bare))


def test_without_networks_the_only_one_is_taken(
    network: NetworkClient, other: RequestContext, new_network: NewNetwork
) -> None:
    assert validated(network, other) == []
    only = new_network(other, cidr="10.9.0.0/24")[0]
    assert validated(network, other) == [only]
    new_network(other, cidr="10.8.0.0/24")
    with pytest.raises(errors.Conflict, match="Multiple possible networks"):
        validated(network, other)


def test_ports_must_be_there_free_and_the_projects_own(
    network: NetworkClient, demo: RequestContext, other: RequestContext, net: str, port: Vif, around: Any
) -> None:
    free = around.ask(demo, "POST", "/network/v2.0/ports", {"port": {"network_id": net}})["port"]["id"]
    assert validated(network, demo, RequestedNetwork(port_id=free)) == [net]
    with pytest.raises(errors.BadRequest, match="multiple instances with a single"):
        validated(network, demo, RequestedNetwork(port_id=free), count=2)
    with pytest.raises(errors.Conflict, match="still in use"):
        validated(network, demo, RequestedNetwork(port_id=port.id))
    with pytest.raises(errors.BadRequest, match="could not be found"):
        validated(network, other, RequestedNetwork(port_id=free))
    admins = around.log_in("admin")
    with pytest.raises(errors.BadRequest, match="another project"):
        # Who sees the ports of all projects may still not give them to a server of one.
        validated(network, admins, RequestedNetwork(port_id=free))
    with pytest.raises(errors.BadRequest, match="could not be found"):
        validated(network, demo, RequestedNetwork(port_id=str(uuid.uuid4())))


def test_an_address_in_use_is_refused_at_once(
    network: NetworkClient, demo: RequestContext, net: str, port: Vif
) -> None:
    with pytest.raises(errors.BadRequest, match="already in use"):
        validated(network, demo, RequestedNetwork(network_id=net, fixed_ip=port.fixed_ips[0].address))
    assert validated(network, demo, RequestedNetwork(network_id=net, fixed_ip="10.1.0.200")) == [net]


def test_more_ports_than_the_quota_allows_are_refused(
    network: NetworkClient, demo: RequestContext, net: str, around: Any
) -> None:
    admin = around.log_in("causeway")
    path = f"/network/v2.0/quotas/{demo.project_id}"
    limit, used = network.port_quota(demo, demo.project_id or "") or (0, 0)
    around.ask(admin, "PUT", path, {"quota": {"port": used + 1}})
    try:
        assert validated(network, demo, RequestedNetwork(network_id=net)) == [net]
        with pytest.raises(errors.OverQuota):
            validated(network, demo, RequestedNetwork(network_id=net), count=2)
    finally:
        around.ask(admin, "PUT", path, {"quota": {"port": limit}})


def test_security_groups_go_by_name_or_id(network: NetworkClient, demo: RequestContext, around: Any) -> None:
    make = {"security_group": {"name": f"web-{uuid.uuid4()}"}}
    group = around.ask(demo, "POST", "/network/v2.0/security-groups", make)["security_group"]
    project = demo.project_id or ""
    assert network.security_group_ids(demo, project, [group["name"], group["id"]]) == [group["id"], group["id"]]
    assert network.list_security_groups(demo, ids=[group["id"]])[0]["name"] == group["name"]
    with pytest.raises(errors.BadRequest, match="nothing-like-it"):
        network.security_group_ids(demo, project, ["nothing-like-it"])
    around.ask(demo, "POST", "/network/v2.0/security-groups", make)
    with pytest.raises(errors.Conflict, match="Multiple security groups"):
        network.security_group_ids(demo, project, [group["name"]])
