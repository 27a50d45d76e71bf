"""Ports are wired at the target of a live migration before the guest's memory travels, however the network service does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.compute.host import vif_events
from causeway.devcloud.switches import Backend

from .live_cloud import LiveCloud

HOSTS = [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2, 3)]
CLOUD = {
    "hosts_per_cell": 3,
    "overrides": {
        "simulated": {"live_networks": dict.fromkeys(HOSTS, "one")},
        # Seconds. Then a host whose ports are not wired is abandoned.
        "DEFAULT": {"vif_plugging_timeout": 5},
    },
}
SWITCHES = (Backend.AGENT, Backend.HYBRID, Backend.OVN)


@pytest.fixture(autouse=True)
def _usual_network(cloud: LiveCloud) -> Iterator[None]:
    yield
    cloud.parts.devcloud.backends, cloud.parts.devcloud.unpluggable_hosts = {}, set()


def wires(cloud: LiveCloud, backend: Backend) -> None:
    """From now on all ports that are bound are wired so."""
    cloud.parts.devcloud.backends = dict.fromkeys(HOSTS, backend)


def booted(cloud: LiveCloud, cell: str) -> tuple[Any, str, str]:
    """A server, its host, and another host: in the same cell, or in the other one."""
    server = cloud.boot(flavor="any.small")
    source = cloud.host_of(server)
    is_there = source[:5].__eq__ if cell == "same cell" else source[:5].__ne__
    return server, source, next(host for host in HOSTS if host != source and is_there(host[:5]))


def profiles(cloud: LiveCloud, server: Any) -> list[dict[str, Any]]:
    return [port.binding_profile for port in cloud.admin.network.ports(device_id=server.id)]


def recorded(cloud: LiveCloud, server: Any) -> list[tuple[str | None, dict[str, Any]]]:
    """How the server's ports are plugged, by its record."""
    record = cloud.record(server, cloud.host_of(server).split("-")[0])
    return [(vif.vif_type, vif.details) for vif in record.network_info]


@pytest.mark.parametrize("backend", SWITCHES)
@pytest.mark.parametrize("cell", ["same cell", "other cell"])
def test_a_guest_goes_to_a_host_that_has_wired_its_port(cloud: LiveCloud, backend: Backend, cell: str) -> None:
    wires(cloud, backend)
    server, _source, target = booted(cloud, cell)
    memory = cloud.remember(server, "a line")
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", target), [move.error for move in cloud.moves(server)]
    assert cloud.memory(server) == memory
    assert profiles(cloud, server) == [{}]
    cloud.check_left_nothing(server, target)


@pytest.mark.parametrize("backend", SWITCHES)
@pytest.mark.parametrize("cell", ["same cell", "other cell"])
def test_a_guest_stays_if_the_named_host_does_not_wire_its_port(cloud: LiveCloud, backend: Backend, cell: str) -> None:
    wires(cloud, backend)
    server, source, target = booted(cloud, cell)
    memory = cloud.remember(server, "a line")
    cloud.parts.devcloud.unpluggable_hosts = {target}
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert cloud.migration(server).status in ("error", "failed")
    assert ("compute_pre_live_migration", "Error") in cloud.events(server, "live-migration")
    assert cloud.memory(server) == memory
    assert profiles(cloud, server) == [{}]
    cloud.check_left_nothing(server, source)


@pytest.mark.parametrize("backend", [Backend.AGENT, Backend.OVN])
def test_another_host_is_tried(cloud: LiveCloud, backend: Backend) -> None:
    wires(cloud, backend)
    server = cloud.booted_on("cell1-host1", "server")
    memory = cloud.remember(server, "a line")
    # One of both is chosen first.
    cloud.parts.devcloud.unpluggable_hosts = {"cell1-host2"}
    there = cloud.migrated(server)
    back = cloud.migrated(server, host="cell1-host1")
    again = cloud.migrated(server)
    assert [each.compute_host for each in (there, back, again)] == ["cell1-host3", "cell1-host1", "cell1-host3"]
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, "cell1-host3")


def test_a_guest_stays_if_no_host_wires_its_port(cloud: LiveCloud) -> None:
    wires(cloud, Backend.OVN)
    server = cloud.booted_on("cell1-host1", "server")
    cloud.parts.devcloud.unpluggable_hosts = {"cell1-host2", "cell1-host3"}
    after = cloud.migrated(server)
    assert (after.status, after.compute_host) == ("ACTIVE", "cell1-host1")
    cloud.check_left_nothing(server, "cell1-host1")


@pytest.mark.parametrize("cell", ["same cell", "other cell"])
def test_hosts_may_wire_ports_in_different_ways(cloud: LiveCloud, cell: str) -> None:
    cloud.parts.devcloud.backends = dict.fromkeys(HOSTS, Backend.HYBRID)
    server, source, target = booted(cloud, cell)
    cloud.parts.devcloud.backends = {source: Backend.HYBRID, target: Backend.OVN}
    ((_kind, before),) = recorded(cloud, server)
    assert before["ovs_hybrid_plug"]
    assert cloud.migrated(server, host=target).compute_host == target
    ((_kind, there),) = recorded(cloud, server)
    assert there["ovs_create_tap"] and "ovs_hybrid_plug" not in there
    assert cloud.migrated(server, host=source).compute_host == source
    ((_kind, back),) = recorded(cloud, server)
    assert back["ovs_hybrid_plug"] and "ovs_create_tap" not in back
    cloud.check_left_nothing(server, source)


@pytest.mark.parametrize("backend", SWITCHES)
def test_a_port_that_was_deleted_is_not_waited_for(
    cloud: LiveCloud, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vif_events, "LOOK_EVERY", 0.2)
    wires(cloud, backend)
    server, _source, target = booted(cloud, "same cell")
    (port,) = cloud.ports(server)
    cloud.admin.network.delete_port(port)
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", target), [move.error for move in cloud.moves(server)]
