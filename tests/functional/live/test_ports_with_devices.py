"""SR-IOV ports in live and near-live migrations: detached before memory travels, and back wherever the guest is then."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway.model.network import Vif
from causeway.store.cell import instances
from tests.functional.servers import sriov_cloud
from tests.functional.servers.pinned_cloud import claims_of
from tests.functional.servers.sriov_cloud import (
    FUNCTIONS,
    boot,
    check_agrees,
    devices_on,
    profile_of,
    profile_on,
)
from tests.security.answers.lying import lying

from .live_cloud import ONE_NETWORK, LiveCloud, until
from .test_near_live import elsewhere

CLOUD: dict[str, Any] = {
    "overrides": {
        **sriov_cloud.OVERRIDES,
        "simulated": sriov_cloud.OVERRIDES["simulated"] | ONE_NETWORK,
        "moves": {"first_pause": 0.05, "stuck_retry_interval": 0.2},
        "libvirt": {"live_migration_monitor_interval": 0.0},
    }
}
networks, ports = sriov_cloud.networks, sriov_cloud.ports


def ports_in_guest(cloud: LiveCloud, server: Any) -> dict[str, str | None]:
    """port -> its device, in the guest."""
    guest = cloud.driver(cloud.host_of(server)).files.guests.get(server.id)
    assert guest is not None
    return {port.id: port.pci_slot for port in guest.ports}


def check_at(cloud: LiveCloud, server: Any, port: Any, host: str, device: str) -> None:
    """The guest has its port and the device there; record, claim and bindings agree; the other host has nothing of it."""
    assert check_agrees(cloud, server, port) == [device]
    assert ports_in_guest(cloud, server)[port.id] == device
    assert claims_of(cloud, server) == [host]
    record = cloud.record(server, host[:5])
    assert [request.requester_id for request in record.pci_requests] == [port.id]
    cloud.check_left_nothing(server, host)


def booted(
    cloud: LiveCloud, ports: Any, vnic_type: str = "direct", *, crosses: bool = False
) -> tuple[Any, Any, str, str]:
    """(server, its port, its host, another host), on which another server has the first function."""
    port = ports("physnet1", vnic_type, binding_profile={"trusted": "true"})
    server = boot(cloud, port, flavor="any.small")
    source = cloud.host_of(server)
    target = elsewhere(cloud, server) if crosses else cloud.other(source)
    sit_on(cloud, ports, target)
    return server, port, source, target


def sit_on(cloud: LiveCloud, ports: Any, host: str) -> None:
    """Another server has the first function there."""
    boot_on(cloud, ports, host)
    assert devices_on(cloud, host) == FUNCTIONS[:1]


def boot_on(cloud: LiveCloud, ports: Any, host: str) -> None:
    """A server with a port on that host."""
    compute = cloud.admin.compute
    others = [each for each in compute.services(binary="nova-compute") if each.host != host]
    for service in others:
        compute.disable_service(service)
    cloud.report()
    try:
        boot(cloud, ports("physnet1"), flavor="any.small")
    finally:
        for service in others:
            compute.enable_service(service)
        cloud.report()


@pytest.mark.parametrize("crosses", [False, True], ids=["in the cell", "across cells"])
def test_the_source_unplugs_the_device_that_it_had(
    cloud: LiveCloud, ports: Any, monkeypatch: pytest.MonkeyPatch, *, crosses: bool
) -> None:
    server, _port, source, target = booted(cloud, ports, crosses=crosses)
    unplugged: list[str] = []
    driver = cloud.driver(source)
    detach, destroy = driver.detach_interface, driver.destroy

    def watch_detach(uuid: str, vif: Vif) -> None:
        unplugged.append(vif.profile["pci_slot"])
        detach(uuid, vif)

    def watch_destroy(uuid: str, vifs: list[Vif], volumes: Any, *, destroy_disks: bool) -> None:
        unplugged.extend(vif.profile["pci_slot"] for vif in vifs)
        destroy(uuid, vifs, volumes, destroy_disks=destroy_disks)

    monkeypatch.setattr(driver, "detach_interface", watch_detach)
    monkeypatch.setattr(driver, "destroy", watch_destroy)
    assert cloud.migrated(server, host=target).compute_host == target
    assert unplugged == [FUNCTIONS[0], FUNCTIONS[0]]


@pytest.mark.parametrize("vnic_type", ["direct", "macvtap"])
def test_a_port_is_in_the_guest_at_its_target_with_a_device_of_the_target(
    cloud: LiveCloud, ports: Any, vnic_type: str
) -> None:
    server, port, source, target = booted(cloud, ports, vnic_type)
    memory = cloud.remember(server, "a line")
    assert ports_in_guest(cloud, server)[port.id] == FUNCTIONS[0]
    assert cloud.migrated(server, host=target).compute_host == target
    assert cloud.memory(server) == memory
    check_at(cloud, server, port, target, FUNCTIONS[1])
    assert profile_of(cloud, port)["trusted"] == "true"
    assert ("compute_detach_port_devices", "Success") in cloud.events(server, "live-migration")
    assert ("compute_attach_port_devices", "Success") in cloud.events(server, "live-migration")
    # And back.
    assert cloud.migrated(server, host=source).compute_host == source
    check_at(cloud, server, port, source, FUNCTIONS[0])


@pytest.mark.parametrize("way", ["live", "near-live"])
def test_a_port_comes_along_to_another_cell(cloud: LiveCloud, ports: Any, way: str) -> None:
    server, port, source, target = booted(cloud, ports, crosses=True)
    if way == "near-live":
        cloud.option("direct", "never", "moves")
    memory = cloud.remember(server, "a line")
    assert cloud.migrated(server, host=target).compute_host == target
    assert cloud.memory(server) == memory
    assert [move.recipe for move in cloud.moves(server)] == [f"{way.replace('-', '_')}_migration"]
    check_at(cloud, server, port, target, FUNCTIONS[1])
    assert cloud.migrated(server, host=source).compute_host == source
    check_at(cloud, server, port, source, FUNCTIONS[0])


@pytest.mark.parametrize("crosses", [False, True], ids=["in the cell", "across cells"])
@pytest.mark.parametrize("ends", ["cancelled", "broken", "forced"])
def test_a_port_is_where_the_guest_is(cloud: LiveCloud, ports: Any, ends: str, *, crosses: bool) -> None:
    server, port, source, target = booted(cloud, ports, crosses=crosses)
    cloud.busy(server)
    if ends == "broken":
        cloud.break_driver([source], "live_migrate")
    assert cloud.migrate_live(server, host=target).status_code == 202
    if ends != "broken":
        number = cloud.becomes(server, "running").id
        cloud.job_runs(server)
        # While memory travels the guest does not have it.
        assert ports_in_guest(cloud, server) == {}
        # Both hosts hold a device, and each one's binding names its own.
        assert sorted(claims_of(cloud, server)) == sorted([source, target])
        assert profile_on(cloud, port, source)["pci_slot"] == FUNCTIONS[0]
        there = profile_on(cloud, port, target)
        assert (there["pci_slot"], there["trusted"]) == (FUNCTIONS[1], "true")
        path = f"/servers/{server.id}/migrations/{number}"
        compute = cloud.admin.compute
        answer = (
            compute.delete(path, microversion="2.96")
            if ends == "cancelled"
            else compute.post(f"{path}/action", json={"force_complete": None}, microversion="2.96")
        )
        assert answer.status_code == 202
    stayed = ends != "forced"
    assert cloud.after(server).compute_host == (source if stayed else target)
    assert cloud.migration(server).status == {"cancelled": "cancelled", "broken": "failed", "forced": "completed"}[ends]
    check_at(cloud, server, port, source if stayed else target, FUNCTIONS[0 if stayed else 1])


@pytest.mark.parametrize("crosses", [False, True], ids=["in the cell", "across cells"])
def test_a_target_that_fails_before_costs_the_guest_no_port(
    cloud: LiveCloud, ports: Any, monkeypatch: pytest.MonkeyPatch, *, crosses: bool
) -> None:
    """1944619 on Launchpad."""
    server, port, source, target = booted(cloud, ports, crosses=crosses)
    touched: list[str] = []
    for name in ("detach_interface", "attach_interface"):
        monkeypatch.setattr(cloud.driver(source), name, lambda *_given, name=name: touched.append(name))
    cloud.break_driver([target], "prepare_live_target")
    assert cloud.migrated(server, host=target).compute_host == source
    assert cloud.migration(server).status == "failed"
    assert touched == []
    check_at(cloud, server, port, source, FUNCTIONS[0])


def test_a_target_without_a_free_device_is_not_chosen(cloud: LiveCloud, ports: Any) -> None:
    server, port, source, target = booted(cloud, ports)
    for _other in FUNCTIONS[1:]:
        boot_on(cloud, ports, target)
    answer = cloud.migrate_live(server, host=target, version="2.33")
    assert answer.status_code == 400 and "free PCI devices (type-VF)" in answer.text, answer.text
    cloud.after(server)
    check_at(cloud, server, port, source, FUNCTIONS[0])


@pytest.mark.parametrize("way", ["live", "near-live"])
def test_a_guest_that_does_not_release_its_port_stays_with_it(cloud: LiveCloud, ports: Any, way: str) -> None:
    server, port, source, target = booted(cloud, ports, crosses=way == "near-live")
    if way == "near-live":
        cloud.option("direct", "never", "moves")
    memory = cloud.remember(server, "a line")
    cloud.break_driver([source], "detach_interface")
    assert cloud.migrated(server, host=target).compute_host == source
    cloud.heal()
    assert cloud.memory(server) == memory
    assert "detach_interface" in cloud.action(server, "live-migration").message
    check_at(cloud, server, port, source, FUNCTIONS[0])


def test_a_port_that_is_not_attached_at_first_is_tried_again(cloud: LiveCloud, ports: Any) -> None:
    server, port, _source, target = booted(cloud, ports)
    cloud.break_driver([target], "attach_interface", 2)
    assert cloud.migrated(server, host=target).compute_host == target
    check_at(cloud, server, port, target, FUNCTIONS[1])
    results = [
        result for event, result in cloud.events(server, "live-migration") if event == "compute_attach_port_devices"
    ]
    assert results[-1] == "Success"


@pytest.mark.expects_errors("is without a port")
@pytest.mark.parametrize(("repair", "crosses"), [("audit", False), ("hard reboot", True)])
def test_a_server_moves_without_a_port_that_can_not_be_attached_and_says_so(
    cloud: LiveCloud, ports: Any, repair: str, *, crosses: bool
) -> None:
    server, port, source, target = booted(cloud, ports, crosses=crosses)
    memory = cloud.remember(server, "a line")
    cloud.break_driver([target], "attach_interface")
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host) == ("ACTIVE", target)
    assert cloud.migration(server).status == "completed"
    assert "a port is not attached" in cloud.action(server, "live-migration").message
    assert cloud.memory(server) == memory
    assert devices_on(cloud, source) == [] and ports_in_guest(cloud, server) == {}
    cloud.heal()
    assert port.id in cloud.only("port.detached").message
    if repair == "audit":
        cloud.fixes("port.detached")
    else:
        cloud.admin.compute.reboot_server(server.id, "HARD")
        cloud.settle()
        cloud.wait(server, "ACTIVE")
    check_at(cloud, server, port, target, FUNCTIONS[1])


@pytest.mark.expects_errors("is without a port")
def test_a_port_that_its_source_can_not_attach_again_holds_up_no_rollback(cloud: LiveCloud, ports: Any) -> None:
    server, port, source, target = booted(cloud, ports)
    cloud.break_driver([source], "live_migrate", 1)
    cloud.break_driver([source], "attach_interface")
    after = cloud.migrated(server, host=target)
    assert (after.status, after.compute_host, cloud.migration(server).status) == ("ACTIVE", source, "failed")
    assert ports_in_guest(cloud, server) == {} and claims_of(cloud, server) == [source]
    assert ("compute_attach_port_devices", "Error") in cloud.events(server, "live-migration")
    cloud.heal()
    cloud.only("port.detached")
    # Whatever a record says, a host attaches what it has claimed.
    database = cloud.cell(source[:5])
    right = instances.get(database, server.id).network_info
    wrong = [dataclasses.replace(vif, profile=vif.profile | {"pci_slot": FUNCTIONS[2]}) for vif in right]
    instances.update(database, server.id, network_info=wrong)
    cloud.fixes("port.detached")
    instances.update(database, server.id, network_info=right)
    check_at(cloud, server, port, source, FUNCTIONS[0])


@pytest.mark.parametrize("who", ["source", "target"])
def test_a_host_of_an_older_release_gets_and_sends_no_such_server(
    cloud: LiveCloud, ports: Any, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    server, port, source, target = booted(cloud, ports)
    old = source if who == "source" else target
    monkeypatch.setattr(cloud.driver(old), "supports_live_port_devices", False)
    cloud.report(old)
    answer = cloud.migrate_live(server, host=target, version="2.33", block_migration="auto")
    assert answer.status_code == 400 and "SR-IOV ports" in answer.text, answer.text
    if who == "target":
        cloud.after(server)
    monkeypatch.undo()
    cloud.report(old)
    assert cloud.migrated(server, host=target).compute_host == target
    check_at(cloud, server, port, target, FUNCTIONS[1])


@pytest.mark.parametrize("vnic_type", ["direct-physical", "remote-managed", "virtio-forwarder"])
def test_other_ports_are_refused(cloud: LiveCloud, ports: Any, vnic_type: str) -> None:
    server = boot(cloud, ports())
    database = cloud.cell(cloud.host_of(server)[:5])
    record = instances.get(database, server.id)
    vifs = [dataclasses.replace(vif, vnic_type=vnic_type) for vif in record.network_info]
    instances.update(database, server.id, network_info=vifs)
    answer = cloud.migrate_live(server)
    instances.update(database, server.id, network_info=record.network_info)
    assert answer.status_code == 400 and f"({vnic_type})" in answer.text


def test_a_paused_guest_is_refused_because_it_releases_nothing(cloud: LiveCloud, ports: Any) -> None:
    server = boot(cloud, ports())
    cloud.member.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    answer = cloud.migrate_live(server)
    assert answer.status_code == 400 and "paused instance with SR-IOV ports" in answer.text


def test_nothing_is_held_of_a_server_that_is_deleted_while_it_travels(cloud: LiveCloud, ports: Any) -> None:
    server, port, source, target = booted(cloud, ports)
    cloud.busy(server)
    assert cloud.migrate_live(server, host=target).status_code == 202
    cloud.becomes(server, "running")
    cloud.job_runs(server)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert (devices_on(cloud, source), devices_on(cloud, target)) == ([], FUNCTIONS[:1])
    left = cloud.admin.network.get_port(port.id)
    assert (left.device_id, left.binding_profile) == ("", {"trusted": "true"})
    assert cloud.hosts_of(server) == {} and cloud.audit().disagreements == []


def test_a_target_that_names_a_device_from_nowhere_harms_no_other_host(cloud: LiveCloud, ports: Any) -> None:
    server, port, source, target = booted(cloud, ports)
    (sitting,) = [claim for claim in cloud.claims(target).listed() if claim.instance_uuid != server.id]

    def lie(method: str, _arguments: dict[str, Any], reply: dict[str, Any]) -> Any:
        if method == "check_can_live_migrate_destination":
            (device,) = reply["result"]["context"]["new_pci_devices"]
            # The source has it, for somebody else or for nobody.
            device["address"] = FUNCTIONS[2]
        return reply

    with lying(cloud.parts.computes[target], lie):
        assert cloud.migrated(server, host=target).compute_host == target
    assert devices_on(cloud, source) == []
    # It attached what it had claimed.
    assert ports_in_guest(cloud, server)[port.id] == FUNCTIONS[1]
    assert sitting in cloud.claims(target).listed()
    assert cloud.migrated(server, host=source).compute_host == source
    check_at(cloud, server, port, source, FUNCTIONS[0])
