"""Ports of servers that move: bound to where the guest is, plugged before it runs, however late the network service is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.compute.host import vif_events
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.moves_cloud import Cloud, until

# Zones count as soon as they are made.
CLOUD = {"overrides": {"scheduler": {"host_state_max_age": 0}}}


def bindings(cloud: Cloud, server: Any) -> dict[str, str]:
    (port,) = cloud.ports(server).values()
    found: dict[str, str] = port[2]
    return found


@pytest.mark.parametrize("plug_delay", [0.0, 0.4], ids=["early", "late"])
def test_the_guest_waits_for_its_port_to_be_plugged(cloud: Cloud, plug_delay: float) -> None:
    server = cloud.boot()
    before = cloud.show(server)
    cloud.parts.devcloud.plug_delay = plug_delay
    # Whoever misses the event, waits for all of this.
    cloud.option("vif_plugging_timeout", 300)
    moved = cloud.resized(server)
    (port,) = cloud.ports(server).values()
    assert port[0] == "ACTIVE"
    assert port[2] == cloud.bindings_between(server, before.compute_host, moved.compute_host)
    after = cloud.reverted(server)
    (port,) = cloud.ports(server).values()
    assert port == ("ACTIVE", after.compute_host, {after.compute_host: "ACTIVE"})


def test_an_event_that_nobody_heard_holds_up_no_guest(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API was unavailable when the network service said that the port is plugged: it does not say so twice."""
    server = cloud.boot()
    cloud.parts.devcloud.plug_delay = 0.2
    cloud.option("vif_plugging_timeout", 300)
    monkeypatch.setattr(vif_events, "LOOK_EVERY", 0.5)
    monkeypatch.setattr(vif_events.VifEvents, "deliver", lambda _self, _event: False)
    moved = cloud.resized(server)
    (port,) = cloud.ports(server).values()
    assert port[:2] == ("ACTIVE", moved.compute_host)


def test_a_port_that_is_never_plugged_rolls_the_move_back(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = {"cell2-host1", "cell2-host2"}
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert "did not plug port" in cloud.faults(server)[-1].message
    assert ("compute_finish_snapshot_based_resize_at_dest", "Error") in cloud.events(server, "resize")


def test_a_port_that_is_never_plugged_may_be_no_reason_to_fail(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.option("vif_plugging_timeout", 1)
    cloud.option("vif_plugging_is_fatal", False)
    cloud.parts.devcloud.unpluggable_hosts = {"cell2-host1", "cell2-host2"}
    cloud.resized(server)


def nothing_is_plugged(cloud: Cloud) -> None:
    """Hosts wait for ports until `plug_now`."""
    cloud.parts.devcloud.plug_delay = 3600.0


def wait_until_bound(cloud: Cloud, server: Any, cell: str) -> None:
    """Until a host of the cell has bound the server's port, and waits for it."""

    def bound_to() -> str:
        ((_status, host, _bindings),) = cloud.ports(server).values()
        return str(host)

    until(bound_to, lambda host: host.startswith(cell), "its port to be bound")


def plug_now(cloud: Cloud, server: Any) -> None:
    cloud.parts.devcloud.plug_delay = 0.0
    for port in cloud.ports(server):
        # Whatever is switched on is plugged anew.
        for is_up in (False, True):
            cloud.admin.network.update_port(port, admin_state_up=is_up)


def test_a_server_that_is_reverted_shows_so_until_its_guest_runs(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    nothing_is_plugged(cloud)
    cloud.member.compute.revert_server_resize(server.id)
    seen: list[tuple[str, str, bool]] = []

    def look() -> Any:
        shown = cloud.show(server)
        runs = bool(cloud.driver("cell1-host1").running_anywhere(server.id))
        seen.append((shown.status, shown.compute_host[:5], runs))
        return shown

    wait_until_bound(cloud, server, "cell1")
    look()
    plug_now(cloud, server)
    until(look, lambda shown: shown.status == "ACTIVE", "the revert to end")
    assert {status for status, _cell, _runs in seen} == {"REVERT_RESIZE", "ACTIVE"}
    assert ("REVERT_RESIZE", "cell1", False) in seen, "the source's record was shown while its guest did not run"
    assert ("ACTIVE", "cell1", False) not in seen


def test_a_server_shows_resize_until_it_can_be_verified(cloud: Cloud) -> None:
    server = cloud.boot()
    nothing_is_plugged(cloud)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    seen = []

    def look() -> str:
        seen.append(cloud.show(server).status)
        return str(seen[-1])

    look()
    wait_until_bound(cloud, server, "cell2")
    look()
    plug_now(cloud, server)
    until(look, lambda status: status == "VERIFY_RESIZE", "the resize to end")
    assert set(seen) == {"RESIZE", "VERIFY_RESIZE"}


@pytest.mark.embedded("looks at calls")
def test_external_events_reach_both_hosts_of_a_move(cloud: Cloud) -> None:
    server = cloud.boot()
    home = cloud.show(server).compute_host
    moved = cloud.resized(server).compute_host
    cloud.settle()

    def reported(act: Callable[[], Any], hosts: int) -> set[str | None]:
        found: list[str | None] = []

        def on_send(message: Outgoing) -> Verdict:
            if message.method == "external_instance_events":
                found.append(message.server)
            return Verdict.DELIVER

        cloud.parts.around.transports.on_send = on_send
        act()
        until(lambda: set(found), lambda seen: len(seen) >= hosts, f"{hosts} hosts to be notified")
        return set(found)

    def post() -> None:
        event = {"name": "network-changed", "server_uuid": server.id, "tag": next(iter(cloud.ports(server)))}
        answer = cloud.admin.compute.post("/os-server-external-events", json={"events": [event]})
        assert answer.status_code == 200

    assert reported(post, 2) == {home, moved}
    cloud.confirmed(server)
    assert reported(post, 1) == {moved}


def test_the_owner_of_the_port_names_the_zone_that_the_server_is_in(cloud: Cloud) -> None:
    cloud.option("move_keeps_availability_zone", False, group="scheduler")
    aggregate = next(each for each in cloud.admin.compute.aggregates() if each.name == "gen2")
    cloud.admin.compute.set_aggregate_metadata(aggregate, {"availability_zone": "new-zone"})
    try:
        server = cloud.boot()
        before = cloud.show(server).availability_zone
        moved = cloud.resized(server)
        (port,) = cloud.admin.network.ports(device_id=server.id)
        assert (moved.availability_zone, port.device_owner) == ("new-zone", "compute:new-zone")
        after = cloud.reverted(server)
        (port,) = cloud.admin.network.ports(device_id=server.id)
        assert (after.availability_zone, port.device_owner) == (before, f"compute:{before}")
    finally:
        cloud.clean()
        cloud.admin.compute.set_aggregate_metadata(aggregate, {"availability_zone": None})


@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
def test_a_port_that_was_there_before_the_server_comes_along(cloud: Cloud, power: str) -> None:
    port = cloud.member.network.create_port(network_id=cloud.network_id, name="mine")
    server = cloud.boot(networks=[{"port": port.id}])
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    moved = cloud.resized(server)
    assert bindings(cloud, server)[moved.compute_host] == "ACTIVE"
    after = cloud.confirmed(server)
    assert after.status == power
    assert bindings(cloud, server) == {after.compute_host: "ACTIVE"}
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, interval=0.05, wait=20)
    left = cloud.admin.network.get_port(port.id)
    assert (left.device_id, left.binding_host_id) == ("", "")
    cloud.member.network.delete_port(port.id)


def test_a_port_deleted_while_verifying_does_not_hold_up_the_revert(cloud: Cloud) -> None:
    gone, kept = (cloud.member.network.create_port(network_id=cloud.network_id) for _ in range(2))
    server = cloud.boot(networks=[{"port": gone.id}, {"port": kept.id}])
    cloud.resized(server)
    cloud.admin.network.delete_port(gone.id)
    after = cloud.reverted(server)
    assert after.status == "ACTIVE"
    assert list(cloud.ports(server)) == [kept.id]
    assert [vif.id for vif in cloud.record(server, "cell1").network_info] == [kept.id]


def test_only_who_may_attaches_servers_to_the_external_networks_of_others(cloud: Cloud) -> None:
    """Policy ``network:attach_external_network``: administrators, as at a create."""
    owner = cloud.admin.identity.find_project("service")
    outside = cloud.admin.network.create_network(name="theirs", is_router_external=True, project_id=owner.id)
    cloud.admin.network.create_subnet(network_id=outside.id, ip_version=4, cidr="198.51.100.0/24")
    server = cloud.boot()
    path, body = f"/servers/{server.id}/os-interface", {"interfaceAttachment": {"net_id": outside.id}}
    assert cloud.member.compute.post(path, json=body).status_code == 403
    assert cloud.admin.compute.post(path, json=body).status_code == 200
    assert "theirs" in cloud.show(server).addresses
    cloud.clean()
    cloud.admin.network.delete_network(outside)
